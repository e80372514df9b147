//! The holder of a lease: identities, and the prefix that is reserved for administrators (KEP-1411).

use std::fmt;

/// A holder that begins with this always holds, whatever the times say. Only `--admin` writes it.
pub const RESERVED_PREFIX: &str = "kubeadm";

/// Whether a holder identity is an administrator's.
pub fn is_reserved(holder: &str) -> bool {
    holder.starts_with(RESERVED_PREFIX)
}

/// Whether a holder identity is that of one process, which [`Who::unique`] gave it: it may have been killed.
pub fn is_process(holder: &str) -> bool {
    holder.contains('#')
}

/// Why a text cannot be the identity of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidHolder {
    /// There is nothing in it.
    Empty,
    /// It has control characters.
    ControlCharacters,
    /// It begins with the prefix that is reserved for administrators.
    Reserved,
}

/// The identity that we write as the holder, and its administrator's form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    plain: String,
    admin: bool,
}

impl Who {
    /// The authenticated user on this host: the same in the next invocation, so that a release
    /// knows what an acquisition wrote. `login` is the user that is logged in there: several
    /// people may share the user of one kubeconfig.
    pub fn user(user: &str, login: Option<&str>, host: &str, admin: bool) -> Self {
        let plain = match login.filter(|login| is_login(login) && !names(user, login)) {
            Some(login) => format!("{user}/{login}@{host}"),
            None => format!("{user}@{host}"),
        };
        // A user may be called kubeadm-something; that does not make an administrator.
        let plain = if is_reserved(&plain) { format!("user:{plain}") } else { plain };
        Self { plain, admin }
    }

    /// An identity given by the user.
    ///
    /// # Errors
    /// Why it cannot be one.
    pub fn named(holder: &str, admin: bool) -> Result<Self, InvalidHolder> {
        if holder.trim().is_empty() {
            return Err(InvalidHolder::Empty);
        }
        if holder.chars().any(char::is_control) {
            return Err(InvalidHolder::ControlCharacters);
        }
        let reserved = is_reserved(holder);
        let plain = match holder.strip_prefix("kubeadm:") {
            Some(plain) if admin && !plain.is_empty() => plain,
            _ if reserved => return Err(InvalidHolder::Reserved),
            _ => holder,
        };
        Ok(Self { plain: plain.to_owned(), admin })
    }

    /// The holder that is written there: to release what another holds.
    pub fn exactly(holder: &str) -> Self {
        match holder.strip_prefix("kubeadm:") {
            Some(plain) => Self { plain: plain.to_owned(), admin: true },
            None => Self { plain: holder.to_owned(), admin: false },
        }
    }

    /// The same, but no other process's: for a command that runs under the lease.
    #[must_use]
    pub fn unique(&self, suffix: &str) -> Self {
        Self { plain: format!("{}#{suffix}", self.plain), admin: self.admin }
    }

    /// The same without the administrator's prefix.
    #[must_use]
    pub fn plain(&self) -> Self {
        Self { plain: self.plain.clone(), admin: false }
    }

    /// The same as an administrator.
    #[must_use]
    pub fn administrator(&self) -> Self {
        Self { plain: self.plain.clone(), admin: true }
    }

    /// What to write as the holder.
    pub fn identity(&self) -> String {
        if self.admin { self.admin_identity() } else { self.plain.clone() }
    }

    fn admin_identity(&self) -> String {
        format!("{RESERVED_PREFIX}:{}", self.plain)
    }

    /// Whether a holder is us. What we hold as an administrator is ours only when we act as one.
    pub fn is(&self, holder: &str) -> bool {
        holder == self.plain || (self.admin && holder == self.admin_identity())
    }

    /// Whether a holder is the same user as an administrator, whether we act as one or not.
    pub fn holds_as_administrator(&self, holder: &str) -> bool {
        holder == self.admin_identity()
    }

    /// Whether it holds as an administrator.
    pub fn is_admin(&self) -> bool {
        self.admin
    }
}

/// Whether this can be the name of a login: it comes from the environment.
fn is_login(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    (1..=64).contains(&name.len()) && name.chars().all(allowed)
}

/// Whether a user's name on the cluster already names the login: `jane`, `oidc:jane`,
/// `jane@example.org`.
fn names(user: &str, login: &str) -> bool {
    user.split(['@', ':', '/']).any(|part| part == login)
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.identity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_same_user_on_the_same_host_is_the_same_holder() {
        let who = Who::user("jane", None, "laptop", false);
        assert_eq!(who.identity(), "jane@laptop");
        let admin = Who::user("jane", None, "laptop", true);
        assert_eq!(admin.identity(), "kubeadm:jane@laptop");
        assert_eq!(admin.to_string(), admin.identity());
        assert!(admin.is_admin() && !who.is_admin());
        assert!(who.administrator().is_admin() && !admin.plain().is_admin());
        assert!(who.is("jane@laptop") && admin.is("jane@laptop") && admin.is("kubeadm:jane@laptop"));
        assert!(!who.is("kubeadm:jane@laptop"), "what an administrator holds takes --admin");
        assert!(!who.is("kubeadm:john@laptop"));
        for (holder, is) in
            [("kubeadm:jane@laptop", true), ("jane@laptop", false), ("kubeadm:john@laptop", false)]
        {
            assert_eq!((who.holds_as_administrator(holder), admin.holds_as_administrator(holder)), (is, is));
        }
        assert!(!who.is(""));
    }

    #[test]
    fn the_holder_of_a_process_is_told_from_a_persons() {
        let jane = Who::user("jane", None, "laptop", false);
        for (who, of_a_process) in [
            (jane.clone(), false),
            (jane.administrator(), false),
            (jane.unique("1f2e3d4c"), true),
            (jane.unique("1f2e3d4c").administrator(), true),
            (jane.administrator().unique("1f2e3d4c"), true),
        ] {
            assert_eq!(is_process(&who.identity()), of_a_process, "{who}");
        }
        assert!(!is_process(""));
    }

    #[test]
    fn people_who_share_a_user_are_told_apart() {
        for (user, login, identity) in [
            ("kubernetes-admin", Some("jane"), "kubernetes-admin/jane@bastion"),
            ("kubernetes-admin", Some("root"), "kubernetes-admin/root@bastion"),
            ("kubernetes-admin", None, "kubernetes-admin@bastion"),
            ("jane", Some("jane"), "jane@bastion"),
            ("oidc:jane", Some("jane"), "oidc:jane@bastion"),
            ("jane@example.org", Some("jane"), "jane@example.org@bastion"),
            ("janet", Some("jane"), "janet/jane@bastion"),
            ("admin", Some(""), "admin@bastion"),
            ("admin", Some("a b\u{1b}"), "admin@bastion"),
        ] {
            assert_eq!(Who::user(user, login, "bastion", false).identity(), identity);
        }
        assert_eq!(Who::user("admin", Some(&"x".repeat(65)), "h", false).identity(), "admin@h");
        let admin = Who::user("a", Some("kubeadm"), "h", true);
        assert_eq!(admin.identity(), "kubeadm:a/kubeadm@h");
    }

    #[test]
    fn a_process_of_ours_is_not_us() {
        let who = Who::user("jane", None, "laptop", false);
        let process = who.unique("1f");
        assert_eq!(process.identity(), "jane@laptop#1f");
        assert!(!who.is(&process.identity()) && !process.is(&who.identity()));
    }

    #[test]
    fn only_admin_writes_the_reserved_prefix() {
        for holder in ["kubeadm", "kubeadm-x", "kubeadm:jane", "kubeadmin"] {
            assert_eq!(Who::named(holder, false), Err(InvalidHolder::Reserved), "{holder}");
        }
        for holder in ["kubeadm", "kubeadm-x", "kubeadm:"] {
            assert_eq!(Who::named(holder, true), Err(InvalidHolder::Reserved), "{holder}");
        }
        assert_eq!(Who::named("jane", true).unwrap().identity(), "kubeadm:jane");
        assert_eq!(Who::named("kubeadm:jane", true).unwrap().identity(), "kubeadm:jane");
        assert_eq!(Who::named("kube", false).unwrap().identity(), "kube");
    }

    #[test]
    fn a_holder_is_some_text() {
        use InvalidHolder::{ControlCharacters, Empty};
        for (holder, why) in [
            ("", Empty),
            ("  ", Empty),
            ("\t", Empty),
            ("a\nb", ControlCharacters),
            ("\u{1b}[0m", ControlCharacters),
        ] {
            assert_eq!(Who::named(holder, false), Err(why), "{holder:?}");
        }
    }

    proptest! {
        #[test]
        fn no_name_makes_an_administrator(user in "(kubeadm)?[a-z:@-]{0,12}", host in "[a-z-]{0,8}") {
            prop_assert!(!is_reserved(&Who::user(&user, None, &host, false).identity()));
            prop_assert!(is_reserved(&Who::user(&user, Some("root"), &host, true).identity()));
            if let Ok(who) = Who::named(&user, false) {
                prop_assert!(!is_reserved(&who.identity()));
            }
        }
    }
}
