//! Holding a lease over time: taking it, waiting for it, keeping it, and running a command under it.
//!
//! Nothing here prints, except that the processes that guard a command write to stderr if this one was killed.
//! [`Claim`] takes a lease by the rules
//! of [`crate::rules::maintenance`], [`Claim::wait`] waits for it, [`keep`] renews it until it is
//! lost. What enforces the end of a command whose lease is lost is the watchdog, a process of its
//! own: the one that renews may itself be stopped or killed.

mod acquire;
pub mod aftermath;
#[cfg(unix)]
mod broadcast;
#[cfg(unix)]
pub mod child;
mod claim;
pub mod clocks;
mod concurrent;
pub mod delete;
pub mod elections;
#[cfg(unix)]
mod ending;
#[cfg(unix)]
pub(crate) mod exec;
pub mod fence;
mod gather;
mod held;
mod keeper;
#[cfg(unix)]
pub(crate) mod leash;
mod log;
mod observe;
#[cfg(unix)]
mod processes;
mod renew;
mod serve;
mod settle;
pub mod target;
#[cfg(unix)]
mod terminal;
mod under;
mod undo;
mod wait;
#[cfg(unix)]
pub(crate) mod watchdog;
mod withdraw;

pub use acquire::{
    Blocked, KnownClaim, NotTaken, TakenLease, TakingProgress, TakingStep, Undone, Wait, check_all, claims,
    process_suffix,
};
pub use claim::{Claim, Took, persistently, within};
pub use gather::take_all;
pub use held::{Held, Released};
pub use keeper::{Lost, keep};
pub use renew::renew_all;
pub use target::{NodeTarget, Selection, targets};
pub use under::keep_while;
#[cfg(unix)]
pub use under::{Ran, run};
pub use undo::{release_all, release_found};
pub use wait::{Waiting, acquire_observed};

/// A write is given up after so many conflicts (409) in a row, or failures without an answer: each time the object
/// is read and decided on again, which is over in milliseconds unless a controller writes it in a loop.
const CONFLICT_ATTEMPTS: u32 = 10;

#[cfg(test)]
mod tests {
    use std::{ops::ControlFlow, time::Duration};

    use super::*;
    use crate::{
        client::{
            self, Cluster, Resource, partitions,
            single::{Address, Writing},
        },
        interrupts::Interrupts,
        program::Program,
        rules::{
            candidate::Candidate, deadline::Schedule, deletion, identity::Identity, plan::Plan, pod::Pod,
            surroundings::Surroundings,
        },
    };

    fn is_send<T: Send>(_: T) {}

    /// A controller spawns these on a runtime of several threads: that they are `Send` is for the compiler to
    /// say.
    #[expect(dead_code)]
    fn what_takes_time_is_send(
        cluster: &Cluster,
        claims: &[KnownClaim],
        held: &[Held],
        interrupts: &Interrupts,
        progress: &mut dyn TakingProgress,
        (judged, around): (&deletion::Judged, &mut Surroundings),
        (request, fencing): (&fence::FenceRequest<'_>, &mut dyn fence::FenceProgress),
    ) {
        is_send(delete::delete(cluster, judged, deletion::Choice::Force, around, delete::DeleteMode::Yes));
        is_send(delete::still_as_shown(cluster, &[judged]));
        let mut aftermath = aftermath::Aftermath::new(Wait::Forever);
        let began = cluster.server_time();
        is_send(aftermath.of(cluster, judged, deletion::Choice::Force, began, &mut ()));
        is_send(aftermath::still_there(cluster, &judged.pod));
        is_send(partitions::read(cluster, &partitions::Which::default(), true, |_| false));
        is_send(fence::fence(cluster, request, claims, interrupts, fencing));
        is_send(targets(cluster, &Selection::default()));
        is_send(take_all(cluster, claims, Wait::Forever, interrupts, progress));
        is_send(acquire_observed(cluster, &claims[0].0, None, Wait::No, interrupts, progress));
        is_send(renew_all(cluster, claims, interrupts, progress));
        is_send(claims[0].0.take(cluster, None));
        is_send(claims[0].0.wait(cluster, |_| ()));
        is_send(keep(cluster, held, Schedule::new(Duration::ZERO), |_| ()));
        is_send(keep_while(cluster, held, Schedule::new(Duration::ZERO), async {}));
        is_send(release_all(cluster, held, true, interrupts));
        is_send(release_found(cluster, held, &Writing::default(), |_, _| ()));
        #[cfg(unix)]
        is_send(run(cluster, held, Schedule::new(Duration::ZERO), &Program::at(""), &[], interrupts, |_| ()));
    }

    #[expect(dead_code)]
    fn what_takes_time_in_elections_is_send(
        cluster: &Cluster,
        (resource, at): (Resource, &Address),
        (candidates, plans): (&[&Candidate], &[Plan]),
        (setting, targets): (&elections::priority::PriorityRequest, Vec<elections::priority::PriorityTarget>),
        (clearing, defect): (&elections::clear::ClearRequest, elections::repair::Defect),
        (wanted, progress): (&elections::leadership::Wanted<'_>, &mut dyn elections::ElectionProgress),
        interrupts: &Interrupts,
    ) {
        use elections::{clear, handover, leadership, priority, prune, repair};

        is_send(priority::set(cluster, resource, targets, setting, progress, interrupts));
        is_send(clear::clear(cluster, resource, candidates, plans.to_vec(), clearing, progress, interrupts));
        is_send(repair::repair(cluster, defect, &Writing::default()));
        is_send(prune::left_behind(cluster, resource, &[], true, cluster.server_time()));
        is_send(prune::delete(cluster, resource, candidates, false, |_| ControlFlow::Continue(())));
        is_send(handover::acknowledges(cluster, resource, candidates[0], handover::FRESH));
        is_send(handover::acknowledgements_of(cluster, resource, candidates));
        is_send(handover::read_again(cluster, resource, candidates[0]));
        is_send(handover::follow(cluster, &plans[0], Duration::ZERO, progress));
        is_send(handover::follow_all(cluster, plans, Duration::ZERO, progress));
        is_send(handover::until_leads(cluster, at, &[], Duration::ZERO, |_| ()));
        is_send(leadership::until_leads(cluster, wanted, |_| ()));
    }

    #[expect(dead_code)]
    fn what_is_read_is_send(cluster: &Cluster, pods: &[&Pod], identities: &[Identity]) {
        is_send(client::surroundings::read(cluster, pods));
        is_send(client::surroundings::read_on_node(cluster, "", pods));
        is_send(client::surroundings::stopped_controllers(cluster));
        is_send(client::surroundings::watchable(cluster));
        is_send(cluster.apiserver_versions(identities));
        is_send(cluster.lease_candidates(None));
        is_send(cluster.discovered_candidates());
        is_send(cluster.candidates_for("", None));
    }
}
