use std::time::Duration;

use crate::{clock::BootInstant, error::Error};

/// Of what has worked before, how long a 401, a 403 or a failing credential plugin may last before it is
/// believed.
///
/// A kube-apiserver that has just been started answers 403 to users that have the permission, until it has
/// read the roles (about 170 ms with v1.37).
#[derive(Clone, Copy, Debug, Default)]
pub struct Refusal(Option<Lasting>);

/// When one and the same refusal was first met, and when last.
#[derive(Clone, Copy, Debug)]
struct Lasting {
    since: BootInstant,
    last: BootInstant,
}

impl Refusal {
    const BELIEVED_AFTER: Duration = Duration::from_secs(10);
    /// A refused request is retried sooner than this: a later refusal is another, after a success.
    const ANOTHER_AFTER: Duration = Duration::from_secs(6);

    /// Whether this failure is a refusal that may pass by itself.
    pub fn may_pass(&mut self, error: &Error) -> bool {
        self.may_pass_at(error, BootInstant::now())
    }

    fn may_pass_at(&mut self, error: &Error, now: BootInstant) -> bool {
        // What an admission policy denies is denied by a server that has read its roles.
        let refused = matches!(
            error,
            Error::Forbidden { .. } | Error::Unauthenticated { .. } | Error::Credential { .. }
        );
        if !refused || error.is_denied_by_policy() {
            return false;
        }
        let since = self.0.filter(|lasting| now < lasting.last + Self::ANOTHER_AFTER);
        let since = since.map_or(now, |lasting| lasting.since);
        self.0 = Some(Lasting { since, last: now });
        now < since + Self::BELIEVED_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{CredentialOrigin, Permission};

    fn forbidden(message: &str) -> Error {
        let needs = Permission { verbs: "patch", resource: "leases".into(), namespace: None };
        Error::Forbidden { message: message.into(), needs }
    }

    #[test]
    fn a_refusal_is_believed_when_it_lasts() {
        let mut refusal = Refusal::default();
        let error = forbidden("no");
        let at = |seconds: u64| BootInstant::from_millis(1_000_000 + 1000 * seconds);
        assert!([0, 4, 8, 9].iter().all(|seconds| refusal.may_pass_at(&error, at(*seconds))));
        assert!(!refusal.may_pass_at(&error, at(10)) && !refusal.may_pass_at(&error, at(14)));
        assert!(refusal.may_pass_at(&error, at(20)), "another, after a success");
        assert!(!refusal.may_pass_at(&Error::Interrupted, at(20)));
        let plugin = Error::Credential {
            message: "it ended with 1".into(),
            origin: CredentialOrigin::Plugin { install_hint: None },
        };
        assert!([40, 45].iter().all(|seconds| refusal.may_pass_at(&plugin, at(*seconds))));
        assert!(!refusal.may_pass_at(&plugin, at(50)));
    }

    #[test]
    fn what_a_policy_denies_does_not_pass() {
        let denied =
            "leases \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no";
        assert!(!Refusal::default().may_pass(&forbidden(denied)));
        assert!(!Refusal::default().may_pass(&forbidden("admission webhook \"w\" denied the request: no")));
    }
}
