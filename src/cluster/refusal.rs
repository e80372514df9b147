use std::time::Duration;

use crate::{clock::BootInstant, error::Error};

/// Of what has worked before, how long a 401 or 403 may last before it is believed.
///
/// A kube-apiserver that has just been started answers 403 to users who have the permission, until it has
/// read the roles (about 170 ms with v1.37).
#[derive(Clone, Copy, Debug, Default)]
pub struct Refusal(Option<BootInstant>);

impl Refusal {
    const BELIEVED_AFTER: Duration = Duration::from_secs(10);
    /// Nobody asks again as late as this about one and the same refusal: it is another.
    const ANOTHER_AFTER: Duration = Duration::from_secs(60);

    /// Whether this failure is a refusal that may pass by itself.
    pub fn may_pass(&mut self, error: &Error) -> bool {
        if !matches!(error, Error::Forbidden { .. } | Error::Unauthenticated { .. }) {
            return false;
        }
        self.0 = self.0.filter(|since| !(*since + Self::ANOTHER_AFTER).has_passed());
        let since = *self.0.get_or_insert_with(BootInstant::now);
        !(since + Self::BELIEVED_AFTER).has_passed()
    }
}
