//! What was noticed beside the matter.

use kube_leases::Remark;

/// The warning.
pub fn remark(remark: &Remark) -> String {
    match remark {
        Remark::Medik8sUnseen => {
            "no permission to read the leases in medik8s-leases: cannot tell whether medik8s holds a node"
                .to_owned()
        }
        Remark::Refused { message } | Remark::Warning { message } | Remark::Deprecated { message } => {
            message.clone()
        }
    }
}
