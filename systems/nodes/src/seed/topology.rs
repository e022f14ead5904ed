//! Which node is in which rack and belongs to which DPUs: the seed's NodeRack and NodeDPUs.

use interlock_checker::SizeError;
use std::fmt;

/// Nodes, racks, DPUs and tenants, and how they hang together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Topology {
    pub(super) racks: usize,
    pub(super) dpus: usize,
    pub(super) tenants: usize,
    pub(super) nodes: Vec<Node>,
}

/// One node; rack and DPU numbers may lie outside of what there is, which is then reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) rack: usize,
    pub(super) dpus: Vec<(usize, usize)>,
}

impl Topology {
    /// All nodes in the first rack; the third node on the second DPU where there is one, as in the
    /// seed's example, the others on the first.
    pub(super) fn usual(nodes: usize, racks: usize, dpus: usize, tenants: usize) -> Self {
        let node = |n: usize| Node { rack: 0, dpus: vec![(0, usize::from(n == 2 && dpus > 1))] };
        Topology { racks, dpus, tenants, nodes: (0..nodes).map(node).collect() }
    }

    /// Reads `n1@r1:r1/d1+r1/d2 n2@r1:r1/d1`.
    pub(super) fn parse(
        text: &str,
        racks: usize,
        dpus: usize,
        tenants: usize,
    ) -> Result<Self, SizeError> {
        let mut nodes = Vec::new();
        for (number, part) in text.split_whitespace().enumerate() {
            let node = Self::node(part, number + 1).ok_or_else(|| {
                SizeError::Meaningless(format!(
                    "cannot read `{part}` in the topology: write n{}@r1:r1/d1, with + between \
                     several DPUs",
                    number + 1
                ))
            })?;
            nodes.push(node);
        }
        if nodes.is_empty() || nodes.len() > 6 {
            return Err(SizeError::Meaningless("a topology has 1 to 6 nodes".to_owned()));
        }
        Ok(Topology { racks, dpus, tenants, nodes })
    }

    fn node(text: &str, number: usize) -> Option<Node> {
        let (name, rest) = text.split_once('@')?;
        let (rack, dpus) = rest.split_once(':')?;
        if numbered(name, 'n')? + 1 != number {
            return None;
        }
        let dpus = dpus.split('+').filter(|dpu| !dpu.is_empty()).map(|dpu| {
            let (rack, dpu) = dpu.split_once('/')?;
            Some((numbered(rack, 'r')?, numbered(dpu, 'd')?))
        });
        Some(Node { rack: numbered(rack, 'r')?, dpus: dpus.collect::<Option<_>>()? })
    }

    /// Whether every DPU of every node exists, in the node's own rack: ConfigurationConsistency.
    pub(super) fn is_consistent(&self) -> bool {
        self.nodes.iter().all(|node| {
            node.dpus
                .iter()
                .all(|(rack, dpu)| *rack == node.rack && *rack < self.racks && *dpu < self.dpus)
        })
    }

    fn is_usual(&self) -> bool {
        *self == Self::usual(self.nodes.len(), self.racks, self.dpus, self.tenants)
    }
}

fn numbered(text: &str, letter: char) -> Option<usize> {
    text.strip_prefix(letter)?.parse::<usize>().ok()?.checked_sub(1).filter(|n| *n < 64)
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Topology { racks, dpus, tenants, nodes } = self;
        write!(f, "nodes={}", nodes.len())?;
        if *racks != 1 {
            write!(f, ",racks={racks}")?;
        }
        write!(f, ",dpus={dpus},tenants={tenants}")?;
        if self.is_usual() {
            return Ok(());
        }
        f.write_str(",topology=")?;
        for (n, node) in nodes.iter().enumerate() {
            let dpus: Vec<_> =
                node.dpus.iter().map(|(rack, dpu)| format!("r{}/d{}", rack + 1, dpu + 1)).collect();
            let gap = if n == 0 { "" } else { " " };
            write!(f, "{gap}n{}@r{}:{}", n + 1, node.rack + 1, dpus.join("+"))?;
        }
        Ok(())
    }
}
