//! Taking one lease or several: what is asked for, what is said on the way, and why it failed.

use std::{fmt, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::{
    claim::Claim,
    held::{Held, Released},
    target::NodeTarget,
    wait::Waiting,
};
use crate::{
    client::{Cluster, Object, Remark, single::Writing},
    error::{Error, Result},
    rules::{
        holder::Who,
        lease::Lease,
        maintenance::MaintenanceStanding,
        taking::{ClaimObstacle, TakingRule, Terms},
        time::ServerTime,
    },
};

/// An attempt that was begun gets so long, whatever is left of the time to wait: it may have been none.
const ATTEMPT: Duration = Duration::from_secs(1);

/// A claim, and the lease as it was just read.
pub type KnownClaim = (Claim, Option<Object<Lease>>);

/// A lease that was taken, and how it stood before.
pub type TakenLease = (Held, MaintenanceStanding);

/// Whether to wait for what cannot be done, or is not over, now: for a lease that is held, or for what follows on
/// a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Do not wait.
    #[default]
    No,
    /// For so long.
    AtMost(Duration),
    /// As long as it takes.
    Forever,
}

impl Wait {
    /// Whether it is waited for at all.
    pub fn waits(self) -> bool {
        self != Self::No
    }

    /// For how long, if at all.
    pub fn limit(self) -> Option<Duration> {
        match self {
            Self::No => None,
            Self::AtMost(limit) => Some(limit),
            Self::Forever => Some(Duration::MAX),
        }
    }

    /// Until when, where that is limited.
    pub(super) fn deadline(self) -> Option<Instant> {
        if let Self::AtMost(limit) = self { Instant::now().checked_add(limit) } else { None }
    }
}

/// A lease that cannot be taken now, and why.
#[derive(Clone)]
pub struct Blocked {
    name: String,
    obstacle: ClaimObstacle,
    lease: Option<Object<Lease>>,
    at: ServerTime,
}

impl Blocked {
    pub(super) fn new(
        cluster: &Cluster,
        name: &str,
        obstacle: ClaimObstacle,
        lease: Option<Object<Lease>>,
    ) -> Box<Self> {
        Box::new(Self { name: name.to_owned(), obstacle, lease, at: cluster.server_time() })
    }

    /// The name of the lease, which is that of the node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The holder that is in the way, if that is it.
    pub fn holder(&self) -> Option<&str> {
        holder_in_the_way(&self.obstacle, self.lease.as_ref())
    }

    /// The reason that the holder gives.
    pub fn reason(&self) -> Option<&str> {
        self.lease.as_ref().and_then(|lease| lease.value.reason())
    }

    /// How long it is held at most without a renewal, where the lease says so.
    pub fn left(&self) -> Option<Duration> {
        left_of(&self.obstacle, self.at)
    }

    /// What is in the way.
    #[cfg(feature = "internals")]
    pub fn obstacle(&self) -> &ClaimObstacle {
        &self.obstacle
    }

    /// The lease, if there is one.
    #[cfg(feature = "internals")]
    pub fn lease(&self) -> Option<&Lease> {
        self.lease.as_ref().map(|lease| &*lease.value)
    }

    /// When that was judged.
    #[cfg(feature = "internals")]
    pub fn at(&self) -> ServerTime {
        self.at
    }
}

/// Briefly: the lease is large, and is in what is logged with `{error:?}`.
impl fmt::Debug for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Blocked").field(&format_args!("{self}")).finish()
    }
}

/// For how long what is in the way is held without a renewal.
pub(super) fn left_of(obstacle: &ClaimObstacle, now: ServerTime) -> Option<Duration> {
    let ClaimObstacle::Standing(MaintenanceStanding::Held { until, .. }) = obstacle else { return None };
    Some(Duration::try_from(until.duration_since(now.0)).unwrap_or_default())
}

/// The holder that an obstacle is, where it is one.
pub(super) fn holder_in_the_way<'a>(
    obstacle: &'a ClaimObstacle,
    lease: Option<&'a Object<Lease>>,
) -> Option<&'a str> {
    match obstacle {
        ClaimObstacle::Medik8s { holder } => Some(holder),
        ClaimObstacle::Terminating { .. } | ClaimObstacle::Standing(MaintenanceStanding::Free) => None,
        ClaimObstacle::Standing(_) | ClaimObstacle::OtherReason { .. } => {
            lease.map(|lease| lease.value.holder())
        }
    }
}

/// Why leases were not taken.
#[derive(Debug)]
#[cfg_attr(not(feature = "internals"), non_exhaustive)]
pub enum NotTaken {
    /// One of them cannot be taken now.
    Blocked(Box<Blocked>),
    /// One did not become free in time.
    NotFree {
        /// Its name.
        name: String,
        /// How long it was waited for.
        waited: Duration,
        /// What is still in the way, if that could be seen.
        blocked: Option<Box<Blocked>>,
    },
    /// The server was too slow to answer: for one of them, or for all.
    TooSlow {
        /// The one.
        name: Option<String>,
    },
    /// The time to wait was over, and this kept failing.
    OutOfTime(Error),
    /// A lease whose expiry can only be observed looks expired, but for so many seconds.
    LooksExpired {
        /// Its name.
        name: String,
        /// Its duration, for which it has to be seen unchanged.
        seconds: i32,
    },
    /// A lease has expired by its timestamps, but its holder still renews it.
    HolderClockWrong {
        /// Its name.
        name: String,
    },
    /// Something failed.
    Failed(Error),
}

impl std::error::Error for NotTaken {}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked(blocked) => blocked.fmt(f),
            Self::NotFree { name, waited, blocked } => {
                write!(f, "'{name}' did not become free within {} s", waited.as_secs())?;
                blocked.as_ref().map_or(Ok(()), |blocked| write!(f, ": {blocked}"))
            }
            Self::TooSlow { name: Some(name) } => {
                write!(f, "the server is too slow to answer about '{name}'")
            }
            Self::TooSlow { name: None } => f.write_str("the server is too slow to answer"),
            Self::OutOfTime(error) => write!(f, "the time to wait is over: {error}"),
            Self::LooksExpired { name, seconds } => {
                write!(
                    f,
                    "'{name}' has expired by its timestamps, but was not observed unchanged for {seconds} s"
                )
            }
            Self::HolderClockWrong { name } => {
                write!(f, "'{name}' has expired by its timestamps, but its holder still renews it")
            }
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' {}", self.name, in_words(&self.obstacle, self.lease.as_ref()))
    }
}

/// What is in the way of a lease, after its name.
pub(super) fn in_words(obstacle: &ClaimObstacle, lease: Option<&Object<Lease>>) -> String {
    match obstacle {
        ClaimObstacle::Standing(MaintenanceStanding::Free) => "is not held".to_owned(),
        ClaimObstacle::Standing(MaintenanceStanding::Malformed { holder, lacks }) => {
            format!("has the holder '{holder}' and no {lacks} to judge it by")
        }
        ClaimObstacle::Standing(_) | ClaimObstacle::OtherReason { .. } => {
            format!("is held by '{}'", holder_in_the_way(obstacle, lease).unwrap_or_default())
        }
        ClaimObstacle::Terminating { .. } => "has a lease that is being deleted".to_owned(),
        ClaimObstacle::Medik8s { holder } => format!("is held by medik8s ('{holder}')"),
    }
}

impl From<Error> for NotTaken {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl NotTaken {
    pub(super) fn is_transient(&self) -> bool {
        matches!(self, Self::Failed(error) if error.is_transient())
    }
}

/// What happens on the way to taking leases, and to giving them up.
#[derive(Debug)]
#[cfg_attr(not(feature = "internals"), non_exhaustive)]
pub enum TakingStep<'a> {
    /// Something was noticed beside the matter, such as what may not be read.
    Remark(&'a Remark),
    /// So many leases are being taken.
    Begun(usize),
    /// One more was taken.
    Taken,
    /// One is waited for: told at every change, and once a second.
    Waiting {
        /// Its name.
        name: &'a str,
        /// What is in the way.
        waiting: &'a Waiting,
        /// How long that is held at most without a renewal, where the lease says so.
        left: Option<Duration>,
        /// How long it has been waited for.
        so_far: Duration,
    },
    /// It is not waited for any more.
    Waited,
    /// One was lost before all were taken: those from that name on are taken again.
    Again {
        /// Why it was lost.
        why: &'a NotTaken,
        /// From which name on.
        from: &'a str,
    },
    /// No more are taken.
    Over,
    /// What was taken is being given up, and this was interrupted: these may still be held.
    UndoInterrupted(&'a [&'a str]),
    /// What was taken was given up.
    Undone(&'a [Undone<'a>]),
    /// One was given up on the way.
    GivenUp(&'a Undone<'a>),
}

/// What became of a lease that was given up.
pub struct Undone<'a> {
    claim: &'a Claim,
    /// Whether it is released; or why that is not known.
    pub released: Result<Released>,
}

impl<'a> Undone<'a> {
    pub(super) fn new(claim: &'a Claim, released: Result<Released>) -> Self {
        Self { claim, released }
    }

    /// The name of the lease.
    pub fn name(&self) -> &'a str {
        self.claim.name()
    }

    /// The identity of the holder that the lease may have been left to.
    pub fn holder(&self) -> String {
        self.left_to().identity()
    }

    /// The holder that the lease may have been left to.
    #[cfg(feature = "internals")]
    pub fn who(&self) -> &Who {
        self.left_to()
    }

    fn left_to(&self) -> &Who {
        self.claim.terms.adopts.as_ref().unwrap_or(&self.claim.terms.who)
    }
}

impl fmt::Debug for Undone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Undone").field("name", &self.name()).field("released", &self.released).finish()
    }
}

/// Receives what happens on the way.
pub trait TakingProgress: Send {
    /// What has just happened.
    fn step(&mut self, step: TakingStep<'_>);
}

impl TakingProgress for () {
    fn step(&mut self, _: TakingStep<'_>) {}
}

/// The claims on these nodes.
///
/// # Errors
/// Where medik8s holds one, unless that is waited for.
pub fn claims(
    targets: Vec<NodeTarget>,
    terms: &Terms,
    seconds: i32,
    wait: Wait,
    writing: &Writing,
) -> Result<Vec<KnownClaim>, Box<Blocked>> {
    let held = |target: &NodeTarget| target.medik8s.clone().filter(|_| !terms.ignore_medik8s);
    for target in targets.iter().filter(|_| !wait.waits()) {
        if let Some(holder) = held(target) {
            let at = ServerTime(jiff::Timestamp::UNIX_EPOCH);
            let (name, obstacle) = (target.node.name.clone(), ClaimObstacle::Medik8s { holder });
            return Err(Box::new(Blocked { name, obstacle, lease: None, at }));
        }
    }
    let claim = |target: NodeTarget| {
        let waits = held(&target).is_some();
        let terms = match terms.rule {
            TakingRule::Process => terms.adopting(target.lease.as_ref().map(|lease| &*lease.value)),
            _ => terms.clone(),
        };
        let mut claim = Claim::on_node(target.node, terms, seconds);
        claim.waits = waits;
        (claim.written(writing.clone()), target.lease)
    };
    Ok(targets.into_iter().map(claim).collect())
}

/// Checks, on the leases as just read, that all can be acquired, before the first write.
///
/// # Errors
/// If one of the leases cannot be taken now.
pub fn check_all(cluster: &Cluster, claims: &[KnownClaim]) -> Result<(), Box<Blocked>> {
    for (claim, lease) in claims {
        if let Some(obstacle) = claim.obstacle(cluster, lease.as_ref()) {
            return Err(Blocked::new(cluster, &claim.at.name, obstacle, lease.clone()));
        }
    }
    Ok(())
}

/// What makes the holder identity of a process its own.
pub fn process_suffix() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let (one, other) = (RandomState::new(), RandomState::new());
    format!("{:08x}", (one.hash_one(std::process::id()) ^ other.hash_one(std::time::SystemTime::now())) >> 32)
}

/// Takes a lease, if that is done in time; otherwise what was written has to be withdrawn.
pub(super) async fn take_by<T>(
    name: &str,
    deadline: Option<Instant>,
    taking: impl Future<Output = Result<T>>,
) -> Result<T, NotTaken> {
    let Some(deadline) = deadline.map(|deadline| deadline.max(Instant::now() + ATTEMPT)) else {
        return Ok(taking.await?);
    };
    let late = |_| NotTaken::TooSlow { name: Some(name.to_owned()) };
    Ok(timeout_at(deadline, taking).await.map_err(late)??)
}
