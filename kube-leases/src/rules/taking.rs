//! Whether a lease may be taken, by which rule, and what undoes it again.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::LeaseSpec;

use super::{
    holder::{self, Who},
    lease::Lease,
    maintenance::{GRACE, MaintenanceStanding, Record, adopted, expiry, is_same_acquisition},
    time::ServerTime,
};

/// By which rule a lease may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakingRule {
    /// A maintenance lease, by one of a person's commands: what is ours is renewed.
    Command,
    /// A maintenance lease, for a process that runs under it: another process of the same holder is
    /// another holder.
    Process,
    /// Leader election, as client-go has it: a lease is expired when it has been seen unchanged for
    /// its duration by our own clock. Its timestamps are the holder's, whose clock may be wrong.
    Observed,
}

/// The holder that wants a lease, and what it accepts.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The holder.
    pub who: Who,
    /// When a lease may be taken.
    pub rule: TakingRule,
    /// A process may go on from the lease that a command of this holder took, and gives it back. An
    /// administrator's stays an administrator's meanwhile.
    pub adopts: Option<Who>,
    /// Only from this lease, in the term that it was seen in: a term that began later was promised to
    /// another process.
    pub adopts_term: Option<Box<Lease>>,
    /// Renew only, never acquire. May shorten the lease; other commands do not, since another process of the
    /// same holder may rely on the longer time.
    pub renews: bool,
    /// Why, for others.
    pub reason: Option<String>,
    /// Which reasons of a lease that is ours may be overwritten by this one.
    pub overwrites_reason: OverwritesReason,
    /// Take a lease that cannot be judged.
    pub take_malformed: bool,
    /// Take a node that medik8s holds.
    pub ignore_medik8s: bool,
}

/// Reasons that may be overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverwritesReason {
    /// None: a lease that has another reason is left as it is.
    None,
    /// These; `None` is that of a lease without one.
    These(Vec<Option<String>>),
    /// Any.
    Any,
}

/// Why a lease cannot be taken now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimObstacle {
    /// It is held, or cannot be judged.
    Standing(MaintenanceStanding),
    /// It is being deleted, and only its finalizers keep it: what is written to it is lost.
    Terminating {
        /// Its finalizers.
        finalizers: Vec<String>,
    },
    /// It is ours, for another reason, or without one: it may be held by a colleague with the same identity.
    OtherReason {
        /// Its reason.
        reason: Option<String>,
        /// Since when it is held.
        since: Option<Timestamp>,
    },
    /// medik8s holds the node.
    Medik8s {
        /// As what.
        holder: String,
    },
}

/// What takes a write back.
#[derive(Clone, Debug, PartialEq)]
pub enum Undo {
    /// It is released.
    Release,
    /// It was held before, by us or by the holder whose lease was adopted, until then.
    PutBack {
        /// What was written.
        record: Record,
        /// Its reason.
        reason: Option<String>,
        /// Until when it was held.
        until: Timestamp,
    },
    /// It was malformed, and taken all the same: it is put back as it was if it was not used, else released.
    Restore {
        /// What was written.
        spec: Box<LeaseSpec>,
        /// Its reason.
        reason: Option<String>,
    },
}

impl Terms {
    /// Of a command that takes a maintenance lease, and leaves it held when it ends.
    pub fn of_command(who: Who, reason: Option<String>) -> Self {
        Self {
            who,
            rule: TakingRule::Command,
            adopts: None,
            adopts_term: None,
            renews: false,
            reason,
            overwrites_reason: OverwritesReason::None,
            take_malformed: false,
            ignore_medik8s: false,
        }
    }

    /// Of a process that runs under a maintenance lease: its holder is its own, made so by `suffix`, and it
    /// goes on from what a command of the same user took before, for an administrator also from what is held
    /// as such.
    pub fn of_process(who: Who, suffix: &str, reason: Option<String>) -> Self {
        let own = who.plain().unique(suffix);
        Self { rule: TakingRule::Process, adopts: Some(who), ..Self::of_command(own, reason) }
    }

    /// Of a process that holds a lease by the rule of leader election.
    pub fn observed(who: Who) -> Self {
        Self { rule: TakingRule::Observed, ignore_medik8s: true, ..Self::of_command(who, None) }
    }

    /// Whether the lease may be taken as it was read, and how it stood; or why not. `observed` is
    /// whether it has been seen unchanged for its duration.
    ///
    /// # Errors
    /// The obstacle.
    pub fn judge(
        &self,
        lease: Option<&Lease>,
        observed: bool,
        now: ServerTime,
    ) -> Result<MaintenanceStanding, ClaimObstacle> {
        let standing = MaintenanceStanding::of(lease.map(|lease| &lease.spec), &self.who, now);
        let Some(lease) = lease else {
            return if self.renews { Err(ClaimObstacle::Standing(standing)) } else { Ok(standing) };
        };
        if lease.metadata.deletion_timestamp.is_some() {
            return Err(ClaimObstacle::Terminating { finalizers: lease.metadata.finalizers.clone() });
        }
        let may = match (self.rule, &standing) {
            // A renewal does not make an administrator's lease of it.
            (TakingRule::Command, MaintenanceStanding::Ours { admin, .. }) => {
                !self.renews || *admin || !self.who.is_admin()
            }
            (TakingRule::Command, _) if self.renews => false,
            (_, MaintenanceStanding::Free) => true,
            (_, MaintenanceStanding::Admin { .. }) => self.is_adopted(lease),
            (TakingRule::Observed, _) => observed,
            (_, MaintenanceStanding::Malformed { .. }) => self.take_malformed,
            (_, MaintenanceStanding::Expired { .. }) => true,
            (TakingRule::Process, MaintenanceStanding::Ours { until, .. }) => {
                until.is_some_and(|until| now.0 > until)
            }
            (_, MaintenanceStanding::Held { .. }) => self.is_adopted(lease),
        };
        // What is taken although it is held is ours already.
        if may && standing.is_valid(now) && self.changes_reason(lease) {
            let since = lease.spec.acquire_time.as_ref().map(|time| time.0);
            return Err(ClaimObstacle::OtherReason { reason: lease.reason().map(str::to_owned), since });
        }
        if may { Ok(standing) } else { Err(ClaimObstacle::Standing(standing)) }
    }

    /// Whether a lease would get another reason than it has, or one where it has none, and may not.
    fn changes_reason(&self, lease: &Lease) -> bool {
        let (Some(new), old) = (self.reason.as_deref(), lease.reason()) else { return false };
        let replaced = match &self.overwrites_reason {
            OverwritesReason::None => false,
            OverwritesReason::These(reasons) => reasons.iter().any(|reason| reason.as_deref() == old),
            OverwritesReason::Any => true,
        };
        Some(new) != old && !replaced
    }

    /// The terms of a process that takes several leases and waits for some of them. Until it has all, it
    /// holds those that it has under a name of its own: another process of the same holder finds
    /// them held, and does not take them for its own.
    #[must_use]
    pub fn gathering(&self, suffix: &str) -> Self {
        Self {
            who: self.who.plain().unique(suffix),
            rule: TakingRule::Process,
            adopts: Some(self.who.clone()),
            renews: false,
            ..self.clone()
        }
    }

    /// The terms of a process that goes on from its holder's lease as it was `seen` at the start, if at all;
    /// or from the one that another process of the same holder has adopted by then, when that puts it back.
    #[must_use]
    pub fn adopting(&self, seen: Option<&Lease>) -> Self {
        let theirs = seen.map(|lease| adopted(lease).unwrap_or_else(|| lease.clone()));
        let theirs = theirs.filter(|lease| self.is_adopted(lease));
        Self {
            adopts: self.adopts.clone().filter(|_| theirs.is_some()),
            adopts_term: theirs.map(Box::new),
            ..self.clone()
        }
    }

    /// What to write to go on holding under these terms what was gathered.
    pub fn gathered(&self, held: &Lease, seconds: i32, now: ServerTime) -> Record {
        let record = Record::new_term(Some(&held.spec), &self.who, seconds, now);
        let acquired = held.spec.acquire_time.as_ref().map(|time| time.0);
        Record { acquired: acquired.unwrap_or(record.acquired), ..record }
    }

    fn is_adopted(&self, lease: &Lease) -> bool {
        self.rule == TakingRule::Process
            && self.adopts.as_ref().is_some_and(|plain| plain.is(lease.holder()))
            && self.adopts_term.as_ref().is_none_or(|seen| is_same_acquisition(seen, lease))
    }

    /// What to write to take a lease that may be taken.
    pub fn record(&self, before: Option<&Lease>, seconds: i32, now: ServerTime) -> Record {
        let seconds = self.seconds(&self.undo(before, now), seconds, now);
        let adopted = before.filter(|lease| self.is_adopted(lease)).map(Lease::holder);
        let before = before.map(|lease| &lease.spec);
        match self.rule {
            TakingRule::Command => Record::acquisition(before, &self.who, seconds, now),
            // If this process is killed, it is still held until it is released.
            TakingRule::Process if adopted.is_some_and(holder::is_reserved) => {
                Record::new_term(before, &self.who.administrator(), seconds, now)
            }
            TakingRule::Process | TakingRule::Observed => Record::new_term(before, &self.who, seconds, now),
        }
    }

    /// For how long to write a lease that `undo` takes back: see [`Terms::renews`].
    pub fn seconds(&self, undo: &Undo, seconds: i32, now: ServerTime) -> i32 {
        if self.renews { seconds } else { undo.lengthened(seconds, now) }
    }

    /// What takes that write back: a lease that was validly ours, or adopted, is put back as it was.
    pub fn undo(&self, before: Option<&Lease>, now: ServerTime) -> Undo {
        let Some(lease) = before else { return Undo::Release };
        let ours = self.rule == TakingRule::Command && self.who.is(lease.holder());
        // An administrator's has no end.
        let until = match expiry(&lease.spec) {
            _ if holder::is_reserved(lease.holder()) => Some(Timestamp::MAX),
            Ok(until) if now.0 <= until => Some(until),
            _ => None,
        };
        match (Record::of(&lease.spec, now), until) {
            (Some(record), Some(until)) if ours || self.is_adopted(lease) => {
                Undo::PutBack { record, reason: lease.reason().map(str::to_owned), until }
            }
            _ if matches!(
                MaintenanceStanding::of(Some(&lease.spec), &self.who, now),
                MaintenanceStanding::Malformed { .. }
            ) =>
            {
                Undo::Restore {
                    spec: Box::new(lease.spec.clone()),
                    reason: lease.reason().map(str::to_owned),
                }
            }
            _ => Undo::Release,
        }
    }
}

impl Undo {
    /// So many seconds, or what is left of the time for which the lease was held before: its holder was
    /// told so, and may not live to put it back.
    pub fn lengthened(&self, seconds: i32, now: ServerTime) -> i32 {
        match self {
            Self::PutBack { until, record, .. } if !holder::is_reserved(&record.holder) => {
                let left = until.duration_since(now.0) - GRACE;
                seconds.max(i32::try_from(left.as_secs()).unwrap_or(i32::MAX).saturating_add(1))
            }
            _ => seconds,
        }
    }

    /// What to write over a lease of ours that is given up, and the reason that it then has.
    pub fn spec(&self, lease: &Lease, now: ServerTime) -> (LeaseSpec, Option<&str>) {
        match self {
            // Time has run out meanwhile: it would be put back as expired.
            Self::PutBack { until, .. } if now.0 > *until => (Record::release(&lease.spec, now).spec(), None),
            Self::PutBack { record, reason, .. } => {
                (record.put_back_over(&lease.spec).spec(), reason.as_deref())
            }
            Self::Restore { spec, reason } => {
                let transitions = lease.spec.lease_transitions.unwrap_or(0).max(0).saturating_add(1);
                let restored = LeaseSpec { lease_transitions: Some(transitions), ..(**spec).clone() };
                (restored, reason.as_deref())
            }
            Self::Release => (Record::release(&lease.spec, now).spec(), None),
        }
    }

    /// The same for a lease that was used.
    #[must_use]
    pub fn after_use(self) -> Self {
        if let Self::Restore { .. } = self { Self::Release } else { self }
    }

    /// When the lease that is put back was acquired.
    pub fn acquired(&self) -> Option<Timestamp> {
        if let Self::PutBack { record, .. } = self { Some(record.acquired) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::{
        super::maintenance::{ADOPTED, REASON},
        *,
    };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000_000 + seconds)
    }

    fn now() -> ServerTime {
        ServerTime(at(0))
    }

    fn terms(rule: TakingRule) -> Terms {
        let plain = Who::user("me", None, "host", false);
        Terms {
            who: if rule == TakingRule::Command { plain.clone() } else { plain.unique("1f") },
            rule,
            adopts: Some(plain),
            adopts_term: None,
            renews: false,
            reason: None,
            overwrites_reason: OverwritesReason::None,
            take_malformed: false,
            ignore_medik8s: false,
        }
    }

    /// A lease of a minute that was renewed so many seconds ago.
    fn lease(holder: &str, renewed: i64) -> Lease {
        Lease {
            spec: LeaseSpec {
                holder_identity: Some(holder.into()),
                acquire_time: Some(MicroTime(at(-500))),
                renew_time: Some(MicroTime(at(-renewed))),
                lease_duration_seconds: Some(60),
                lease_transitions: Some(4),
                ..LeaseSpec::default()
            },
            ..Lease::default()
        }
    }

    #[test]
    fn what_each_rule_may_take() {
        use TakingRule::{Command, Observed, Process};
        let malformed = || {
            let mut lease = lease("x", 0);
            lease.spec.renew_time = None;
            lease
        };
        for (lease, takers) in [
            (None, &[Command, Process, Observed][..]),
            (Some(lease("", 0)), &[Command, Process, Observed]),
            (Some(lease("x", 0)), &[]),
            // By its timestamps it is expired, which does not count where expiry is observed.
            (Some(lease("x", 64)), &[Command, Process]),
            (Some(lease("kubeadm:x", 9999)), &[]),
            (Some(malformed()), &[]),
            (Some(lease("me@host", 0)), &[Command, Process]),
            (Some(lease("me@host", 64)), &[Command, Process]),
            (Some(lease("me@host#1f", 0)), &[]),
            (Some(lease("me@host#1f", 63)), &[]), // the last moment of the grace
            (Some(lease("me@host#1f", 64)), &[Command, Process]),
            (Some(lease("me@host#2e", 0)), &[]),
        ] {
            for rule in [Command, Process, Observed] {
                let judged = terms(rule).judge(lease.as_ref(), false, now());
                assert_eq!(judged.is_ok(), takers.contains(&rule), "{rule:?}: {lease:?} {judged:?}");
            }
        }
        let observed = |lease: &Lease| terms(Observed).judge(Some(lease), true, now()).is_ok();
        assert!(observed(&lease("x", 0)) && observed(&malformed()) && observed(&lease("me@host#1f", 0)));
        assert!(!observed(&lease("kubeadm:x", 9999)));
        let confirmed = Terms { take_malformed: true, ..terms(Command) };
        assert!(confirmed.judge(Some(&malformed()), false, now()).is_ok());
        let alone = Terms { adopts: None, ..terms(Process) };
        assert!(alone.judge(Some(&lease("me@host", 0)), false, now()).is_err());
    }

    /// What its user acquired in another term is not a process's to use.
    #[test]
    fn a_process_goes_on_only_from_the_term_that_it_saw() {
        let seen = lease("me@host", 0);
        let goes_on = |start: Option<&Lease>, now_is: &Lease| {
            let terms = terms(TakingRule::Process).adopting(start);
            let judged = terms.judge(Some(now_is), false, now()).is_ok();
            assert_eq!(matches!(terms.undo(Some(now_is), now()), Undo::PutBack { .. }), judged);
            judged
        };
        let mut renewed = lease("me@host", -5);
        renewed.metadata.resource_version = "9".into();
        let mut anew = seen.clone();
        anew.spec.acquire_time = Some(MicroTime(at(-1)));
        // Adopted and put back in between.
        let mut put_back = seen.clone();
        put_back.spec.lease_transitions = Some(6);
        let mut recreated = seen.clone();
        recreated.metadata.uid = "another".into();
        let adopting = |holder: &str, acquired: i64| {
            let mut lease = lease(holder, 0);
            lease.spec.acquire_time = Some(MicroTime(at(-2)));
            lease.metadata.annotations.insert(ADOPTED.into(), format!("{:.6}", at(acquired)));
            lease
        };
        let mut garbled = adopting("me@host#2e", -500);
        garbled.metadata.annotations.insert(ADOPTED.into(), "yesterday".into());
        for (start, now_is, wanted) in [
            (Some(&seen), &seen, true),
            (Some(&seen), &renewed, true),
            (Some(&seen), &anew, false),
            (Some(&seen), &put_back, true),
            (Some(&seen), &recreated, false),
            (Some(&lease("x", 0)), &seen, false),
            (Some(&lease("", 0)), &seen, false),
            (None, &seen, false),
            // Another process had adopted it at the start, and has put it back.
            (Some(&adopting("me@host#2e", -500)), &put_back, true),
            (Some(&adopting("me@host#2e", -500)), &anew, false),
            (Some(&adopting("me@host#2e", -500)), &recreated, false),
            (Some(&adopting("me@host#2e", -501)), &put_back, false),
            (Some(&adopting("x#2e", -500)), &put_back, false),
            // It has adopted none: what comes after it is promised to another process.
            (Some(&lease("me@host#2e", 0)), &put_back, false),
            (Some(&garbled), &put_back, false),
        ] {
            assert_eq!(goes_on(start, now_is), wanted, "{start:?} {now_is:?}");
        }
        // An administrator's only as an administrator.
        let (admins, put_back) = (adopting("kubeadm:me@host#2e", -500), lease("kubeadm:me@host", 9999));
        assert!(!goes_on(Some(&admins), &put_back));
        let admin = Terms { adopts: Some(Who::user("me", None, "host", true)), ..terms(TakingRule::Process) };
        assert!(admin.adopting(Some(&admins)).judge(Some(&put_back), false, now()).is_ok());
        assert!(admin.adopting(Some(&admins)).judge(Some(&seen), false, now()).is_err());
    }

    #[test]
    fn a_renewal_takes_only_what_is_ours() {
        let renews = Terms { renews: true, ..terms(TakingRule::Command) };
        let judged = |lease: Option<&Lease>| renews.judge(lease, false, now()).is_ok();
        assert!(judged(Some(&lease("me@host", 0))) && judged(Some(&lease("me@host", 64))));
        for other in [None, Some(lease("", 0)), Some(lease("x", 0)), Some(lease("x", 64))] {
            assert!(!judged(other.as_ref()), "{other:?}");
        }
    }

    #[test]
    fn a_lease_that_is_being_deleted_is_never_taken() {
        for rule in [TakingRule::Command, TakingRule::Process, TakingRule::Observed] {
            for mut lease in [lease("", 0), lease("x", 64), lease("me@host", 0)] {
                lease.metadata.deletion_timestamp = Some(at(-1));
                lease.metadata.finalizers = vec!["a/b".into()];
                let obstacle = ClaimObstacle::Terminating { finalizers: vec!["a/b".into()] };
                assert_eq!(terms(rule).judge(Some(&lease), true, now()), Err(obstacle));
            }
        }
    }

    #[test]
    fn another_reason_is_not_overwritten_without_consent() {
        let with = |reason: Option<&str>, renewed| {
            let mut lease = lease("me@host", renewed);
            lease.metadata.annotations.extend(reason.map(|reason| (REASON.to_owned(), reason.to_owned())));
            lease
        };
        let judged = |rule, new: Option<&str>, overwrites: &OverwritesReason, old: Option<&str>, renewed| {
            let overwrites_reason = overwrites.clone();
            let terms = Terms { reason: new.map(str::to_owned), overwrites_reason, ..terms(rule) };
            terms.judge(Some(&with(old, renewed)), false, now())
        };
        let judge = |new: Option<&str>, any: bool, old: Option<&str>, renewed| {
            let overwrites = if any { OverwritesReason::Any } else { OverwritesReason::None };
            judged(TakingRule::Command, new, &overwrites, old, renewed)
        };
        let these = |reason: &str| OverwritesReason::These(vec![Some(reason.to_owned())]);
        assert!(judged(TakingRule::Command, Some("reboot"), &these("disk"), Some("disk"), 0).is_ok());
        assert!(judged(TakingRule::Command, Some("reboot"), &these("other"), Some("disk"), 0).is_err());
        // A lease that would be adopted is as much a colleague's.
        assert!(
            judged(TakingRule::Process, Some("reboot"), &OverwritesReason::None, Some("disk"), 0).is_err()
        );
        assert!(judged(TakingRule::Process, None, &OverwritesReason::None, Some("disk"), 0).is_ok());
        assert_eq!(
            judge(Some("reboot"), false, Some("disk"), 0),
            Err(ClaimObstacle::OtherReason { reason: Some("disk".into()), since: Some(at(-500)) })
        );
        assert!(judge(Some("reboot"), true, Some("disk"), 0).is_ok());
        assert!(judge(Some("disk"), false, Some("disk"), 0).is_ok());
        assert!(judge(None, false, Some("disk"), 0).is_ok());
        let unsaid = Err(ClaimObstacle::OtherReason { reason: None, since: Some(at(-500)) });
        assert_eq!(judge(Some("reboot"), false, None, 0), unsaid, "its holder had none to say");
        assert!(judge(Some("reboot"), true, None, 0).is_ok());
        assert!(
            judged(TakingRule::Command, Some("reboot"), &OverwritesReason::These(vec![None]), None, 0)
                .is_ok()
        );
        assert!(judged(TakingRule::Command, Some("reboot"), &these("disk"), None, 0).is_err());
        assert!(judge(None, false, None, 0).is_ok());
        assert!(judge(Some("reboot"), false, Some("disk"), 64).is_ok(), "its time is over");
        assert!(judge(Some("reboot"), false, None, 64).is_ok());
        // Another's reason is not asked about: it cannot be taken at all.
        let confirmed = Terms { reason: Some("reboot".into()), ..terms(TakingRule::Command) };
        let held = MaintenanceStanding::Held { holder: "x".into(), until: at(60) + GRACE };
        assert_eq!(confirmed.judge(Some(&lease("x", 0)), false, now()), Err(ClaimObstacle::Standing(held)));
    }

    #[test]
    fn what_was_held_before_is_put_back_and_all_else_released() {
        let put_back = |rule, before: Option<Lease>| match terms(rule).undo(before.as_ref(), now()) {
            Undo::Release | Undo::Restore { .. } => None,
            Undo::PutBack { record, until, .. } => Some((record.holder, until)),
        };
        let mine = Some(("me@host".to_owned(), at(60) + GRACE));
        assert_eq!(put_back(TakingRule::Command, None), None);
        assert_eq!(put_back(TakingRule::Command, Some(lease("me@host", 0))), mine);
        assert_eq!(put_back(TakingRule::Command, Some(lease("me@host", 64))), None, "taken anew");
        assert_eq!(put_back(TakingRule::Process, Some(lease("me@host", 0))), mine);
        assert_eq!(put_back(TakingRule::Process, Some(lease("me@host", 64))), None);
        assert_eq!(put_back(TakingRule::Process, Some(lease("me@host#1f", 64))), None);
        assert_eq!(put_back(TakingRule::Observed, Some(lease("me@host", 0))), None);
        assert_eq!(put_back(TakingRule::Command, Some(lease("x", 64))), None);
        assert_eq!(put_back(TakingRule::Command, Some(lease("x", 0))), None);
        let admin = Terms { who: Who::user("me", None, "host", true), ..terms(TakingRule::Command) };
        assert!(matches!(admin.undo(Some(&lease("kubeadm:me@host", 9999)), now()), Undo::PutBack { .. }));
        let mut timeless = lease("kubeadm:me@host", 0);
        (timeless.spec.renew_time, timeless.spec.lease_duration_seconds) = (None, None);
        assert!(matches!(admin.undo(Some(&timeless), now()), Undo::PutBack { .. }), "it holds all the same");
    }

    #[test]
    fn an_administrators_own_lease_is_adopted_as_an_administrators() {
        let admin = Who::user("me", None, "host", true);
        let adopting = Terms { adopts: Some(admin), ..terms(TakingRule::Process) };
        let before = lease("kubeadm:me@host", 9999);
        assert!(adopting.judge(Some(&before), false, now()).is_ok());
        assert_eq!(adopting.record(Some(&before), 60, now()).holder, "kubeadm:me@host#1f");
        assert!(
            matches!(adopting.undo(Some(&before), now()), Undo::PutBack { record, .. } if record.holder == "kubeadm:me@host")
        );
        assert_eq!(adopting.record(Some(&lease("me@host", 0)), 60, now()).holder, "me@host#1f");
        assert_eq!(adopting.record(None, 60, now()).holder, "me@host#1f");
        assert!(adopting.judge(Some(&lease("kubeadm:x", 0)), false, now()).is_err());
        assert!(terms(TakingRule::Process).judge(Some(&before), false, now()).is_err(), "that takes --admin");
    }

    #[test]
    fn what_is_gathered_is_another_processs_until_all_of_it_is_had() {
        let admin = Who::user("me", None, "host", true);
        for (who, holder) in [(Who::user("me", None, "host", false), "me@host"), (admin, "kubeadm:me@host")] {
            let wanted = Terms { who, adopts: None, ..terms(TakingRule::Command) };
            let gathering = wanted.gathering("2e");
            let taken = gathering.record(None, 60, now());
            assert_eq!(taken.holder, "me@host#2e", "an administrator's would be stranded for ever");
            let pending = lease("me@host#2e", 0);
            assert!(wanted.judge(Some(&pending), false, now()).is_err());
            assert!(wanted.gathering("1f").judge(Some(&pending), false, now()).is_err());
            // What a command of the same holder took is gathered too, and not shortened.
            let shortening = Terms { renews: true, ..wanted.clone() }.gathering("2e");
            let taken = lease("me@host", 20);
            assert!(shortening.judge(Some(&taken), false, now()).is_ok());
            assert_eq!(shortening.record(Some(&taken), 5, now()).seconds, 41);
            let record = wanted.gathered(&pending, 300, now());
            assert_eq!((record.holder.as_str(), record.seconds, record.transitions), (holder, 300, 5));
            assert_eq!((record.acquired, record.renewed), (at(-500), at(0)));
        }
    }

    #[test]
    fn what_is_held_already_is_not_shortened_by_taking_it_again() {
        let seconds = |rule, before: &Lease, asked| terms(rule).record(Some(before), asked, now()).seconds;
        for rule in [TakingRule::Command, TakingRule::Process] {
            assert_eq!(seconds(rule, &lease("me@host", 20), 5), 41, "{rule:?}");
            assert_eq!(seconds(rule, &lease("me@host", 20), 300), 300);
            assert_eq!(seconds(rule, &lease("me@host", 64), 5), 5, "its time was over");
            assert_eq!(seconds(rule, &lease("x", 64), 5), 5);
        }
        let renew = Terms { renews: true, ..terms(TakingRule::Command) };
        assert_eq!(renew.record(Some(&lease("me@host", 20)), 5, now()).seconds, 5);
        let admin = Terms { who: Who::user("me", None, "host", true), ..terms(TakingRule::Command) };
        assert_eq!(admin.record(Some(&lease("kubeadm:me@host", 0)), 5, now()).seconds, 5);
    }

    #[test]
    fn putting_back_restores_times_and_reason_and_counts_the_change_of_hands() {
        let mut before = lease("me@host", 20);
        before.metadata.annotations.insert(REASON.into(), "disk".into());
        let undo = terms(TakingRule::Process).undo(Some(&before), now());
        let mut held = lease("me@host#1f", 0);
        held.spec.lease_transitions = Some(5);
        let (spec, reason) = undo.spec(&held, now());
        assert_eq!(reason, Some("disk"));
        let expected = Record {
            holder: "me@host".into(),
            seconds: 60,
            acquired: at(-500),
            renewed: at(-20),
            transitions: 6,
        };
        assert_eq!(spec, expected.spec());
        assert_eq!(undo.spec(&held, ServerTime(at(43))), (expected.spec(), Some("disk")), "the last moment");
        let (spec, reason) = undo.spec(&held, ServerTime(at(44)));
        assert_eq!((spec.holder_identity.as_deref(), reason), (Some(""), None), "its time ran out meanwhile");
        let (spec, _) = undo.spec(&lease("me@host", 0), now());
        assert_eq!(spec.lease_transitions, Some(4), "a renewal that is taken back changes no hands");
        assert_eq!(Undo::Release.spec(&held, now()).0.holder_identity.as_deref(), Some(""));
        assert_eq!(undo.clone().after_use(), undo);
    }

    #[test]
    fn a_malformed_lease_is_put_back_with_what_it_lacks_unless_it_was_used() {
        for lacks_time in [true, false] {
            let mut before = lease("x", 20);
            before.metadata.annotations.insert(REASON.into(), "disk".into());
            before.spec.acquire_time = None;
            if lacks_time {
                before.spec.renew_time = None;
            } else {
                before.spec.lease_duration_seconds = None;
            }
            for rule in [TakingRule::Command, TakingRule::Process, TakingRule::Observed] {
                let undo = terms(rule).undo(Some(&before), now());
                let mut held = lease("me@host#1f", 0);
                held.spec.lease_transitions = Some(5);
                let restored = LeaseSpec { lease_transitions: Some(6), ..before.spec.clone() };
                assert_eq!(undo.spec(&held, now()), (restored, Some("disk")), "{rule:?}");
                assert_eq!(undo.after_use(), Undo::Release);
            }
        }
    }
}
