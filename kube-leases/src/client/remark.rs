/// So many are kept until they are taken, which may be never.
pub(super) const MOST: usize = 100;

/// What was noticed beside the matter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(feature = "internals"), non_exhaustive)]
pub enum Remark {
    /// Without permission to read medik8s' leases it cannot be told whether medik8s holds a node.
    Medik8sUnseen,
    /// What could be read before is refused now, and done without.
    Refused {
        /// The refusal, in the server's words.
        message: String,
    },
    /// A warning in an answer of the server.
    Warning {
        /// The server's words.
        message: String,
    },
    /// The server warns that a version of an API is deprecated that this library has chosen, as the best of those
    /// that are served: no caller can choose another.
    Deprecated {
        /// The server's words.
        message: String,
    },
}
