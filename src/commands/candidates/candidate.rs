//! The candidate that is meant by a name.

use kube_leases::rules::choice::Unclear;

use crate::{error::Error, output::words::election::called};

/// A name that means no candidate, or several.
pub fn unclear(wanted: &str, why: &Unclear<'_, '_>) -> Error {
    let found = match why {
        Unclear::None => {
            return Error::NotFound {
                message: format!("there is no candidate '{wanted}'"),
                hint: Some(
                    "'kubectl lease candidates' lists them; a component that restarts comes back under a new name"
                        .into(),
                ),
            };
        }
        Unclear::Several(found) => found,
    };
    let mut names: Vec<_> = found
        .iter()
        .map(|one| {
            format!("{} for {}", one.candidate.name(), called(one.election.namespace, one.election.name))
        })
        .collect();
    if names.len() > 5 {
        let more = names.len() - 4;
        names.truncate(4);
        names.push(format!("one of {more} more"));
    }
    Error::Usage {
        message: format!("'{wanted}' can be {}", names.join(", or ")),
        hint: Some("give the whole name, or --lease or -n".into()),
    }
}
