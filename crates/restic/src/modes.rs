//! Modes of files as restic writes them down, which is as Go does, and as the kernel has them.

/// What restic writes for each sort of file.
const SORTS: [(u32, u32); 7] = [
    (0o100_000, 0),
    (0o040_000, 1 << 31),
    (0o120_000, 1 << 27),
    (0o060_000, 1 << 26),
    (0o020_000, (1 << 26) | (1 << 21)),
    (0o010_000, 1 << 25),
    (0o140_000, 1 << 24),
];

/// Set user, set group, sticky.
const BITS: [(u32, u32); 3] = [(0o4000, 1 << 23), (0o2000, 1 << 22), (0o1000, 1 << 20)];

/// The mode as restic writes it.
pub(crate) fn to_restic(mode: u32) -> u32 {
    let sort = SORTS.iter().find(|(kernel, _)| mode & 0o170_000 == *kernel);
    // What the kernel does not name is "irregular" to Go.
    let mut restic = (mode & 0o777) | sort.map_or(1 << 19, |(_, restic)| *restic);
    for (kernel, bit) in BITS {
        if mode & kernel != 0 {
            restic |= bit;
        }
    }
    restic
}

/// The permissions that the kernel has for a mode that restic wrote; the sort of file is the node's.
pub(crate) fn permissions(restic: u32) -> u32 {
    BITS.iter().fold(restic & 0o777, |mode, (kernel, bit)| match restic & bit {
        0 => mode,
        _ => mode | kernel,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_written_as_go_does() {
        // As `restic cat tree` shows them.
        assert_eq!(to_restic(0o100_644), 420);
        assert_eq!(to_restic(0o040_755), 2_147_484_141);
        assert_eq!(to_restic(0o120_777), 134_218_239);
        assert_eq!(to_restic(0o020_620), 69_206_416);
        assert_eq!(to_restic(0o104_755), 8_389_101);
        assert_eq!(to_restic(0o041_777), 2_148_532_735);
    }

    #[test]
    fn permissions_come_back() {
        for permissions_before in 0..=0o7777 {
            for (sort, _) in SORTS {
                let restic = to_restic(sort | permissions_before);
                assert_eq!(permissions(restic), permissions_before);
            }
        }
    }
}
