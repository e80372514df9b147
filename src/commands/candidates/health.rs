//! What is wrong with the elections of a cluster, for `doctor`.

use super::{elections, told};
use crate::{
    cluster::Cluster,
    domain::{
        diagnosis::{Level, Trouble},
        election::{self, Wrong},
        safer::with_flags,
    },
    error::Result,
};

/// What is wrong with those of a namespace or of all, and how many there are; `None` where coordinated election
/// is off.
pub async fn troubles(namespace: Option<&str>, cluster: &Cluster) -> Result<Option<(usize, Vec<Trouble>)>> {
    let Some(found) = cluster.elections(namespace).await? else { return Ok(None) };
    let now = cluster.server_time();
    let all = elections(&found.parts);
    let troubles = all
        .iter()
        .flat_map(|election| {
            let wrongs = election.outlook(now).wrongs;
            wrongs.into_iter().filter_map(move |wrong| {
                let level = level(&wrong, election.namespace)?;
                let (message, hint) = told(&wrong, election, now);
                let hint = with_flags(&hint, cluster.flags());
                Some(Trouble { level, message: format!("{}: {message}", election.called()), hint })
            })
        })
        .collect();
    Ok(Some((all.len(), troubles)))
}

/// How bad it is; `None` for what is another controller's business, or passes by itself. A component of the
/// control plane without a leader is a failure of the cluster.
fn level(wrong: &Wrong, namespace: &str) -> Option<Level> {
    match wrong {
        Wrong::Foreign(_) | Wrong::StalePreferred(_) => None,
        _ if namespace != election::CONTROLLER.0 => Some(Level::Warn),
        Wrong::Stuck { .. } | Wrong::NobodyElected { .. } | Wrong::Conflict(_) => Some(Level::Fail),
        Wrong::NullHolder { foreign } => Some(if *foreign { Level::Warn } else { Level::Fail }),
        Wrong::Blocked { .. }
        | Wrong::PingStorm { .. }
        | Wrong::Tie(_)
        | Wrong::LeaderNoCandidate { .. }
        | Wrong::Overdue(_)
        | Wrong::DeadPriority(_) => Some(Level::Warn),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_of_the_control_plane_without_a_leader_is_a_failure() {
        let (name, names) = (|| "a_1".to_owned(), || vec!["a_1".to_owned(), "b_2".to_owned()]);
        let (warn, fail) = (Some(Level::Warn), Some(Level::Fail));
        for (wrong, kube_system, elsewhere) in [
            (Wrong::Stuck { holder: name(), preferred: None, since: None }, fail, warn),
            (Wrong::NobodyElected { since: None }, fail, warn),
            (Wrong::Conflict([(name(), name()), (name(), name())]), fail, warn),
            (Wrong::NullHolder { foreign: false }, fail, warn),
            (Wrong::NullHolder { foreign: true }, warn, warn),
            (Wrong::Blocked { candidates: names(), until: None }, warn, warn),
            (Wrong::PingStorm { candidates: names(), until: None }, warn, warn),
            (Wrong::Tie(names()), warn, warn),
            (Wrong::LeaderNoCandidate { leader: name(), coordinated: true }, warn, warn),
            (Wrong::Overdue(name()), warn, warn),
            (Wrong::DeadPriority(names()), warn, warn),
            (Wrong::Foreign(name()), None, None),
            (Wrong::StalePreferred(name()), None, None),
        ] {
            assert_eq!(level(&wrong, "kube-system"), kube_system, "{wrong:?}");
            assert_eq!(level(&wrong, "shop"), elsewhere, "{wrong:?}");
        }
    }
}
