//! What signals do to a child that is about to execute a program.

/// Every signal does what it does by default. Whoever starts Interlock in the background of a script has it ignore some, and
/// what is ignored stays ignored when a program is executed: a shell could not even trap it.
#[allow(unsafe_code)]
pub(super) fn reset() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: `signal` is async-signal-safe, so it may be called between fork and exec, and the handler is a constant.
        // It fails for the few signals that cannot be changed, which are as they have to be.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
