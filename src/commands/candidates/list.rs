use std::collections::BTreeSet;

use super::{
    election::no_candidates,
    row::{CandidateRow, rows},
};
use crate::{
    cli::{self, Candidates},
    commands::{
        namespaces::check_namespace,
        watching::{self, View},
    },
    connection::Reached,
    error::{Error, NO_COORDINATION, Result},
    exit::ExitCode,
    output::{
        Format, Printer,
        words::{
            election::{called, controller},
            paste::with_flags,
            trouble::trouble,
        },
    },
};
use kube_leases::{
    client::{
        Object, Resource,
        candidates::{Part, candidates_query, elections_of, leases_of, leases_query},
    },
    rules::{
        controller::{self as rule, Controller},
        time::ServerTime,
        trouble::Trouble,
    },
};

pub async fn run(
    args: &Candidates,
    namespace: Option<&str>,
    cluster: &Reached,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let listing = &args.listing;
    let not_served = || cluster.without_coordination();
    // Labels select what is shown, not which candidates take part.
    let selected = |resource| {
        let selected = listing.selector.is_some() || listing.field_selector.is_some();
        let query = candidates_query(resource, namespace).metadata_only();
        selected.then(|| query.select(listing.selector.as_deref(), listing.field_selector.as_deref()))
    };
    if listing.watch {
        let resource = cluster.lease_candidates(namespace).await?.ok_or_else(not_served)?;
        let mut queries = vec![candidates_query(resource, namespace), leases_query(namespace)];
        queries.extend(selected(resource));
        let view = Shown { lease: args.lease.as_deref(), resource };
        return watching::run(&view, &queries, listing, cluster, printer).await;
    }

    let Some(found) = cluster.elections(namespace).await? else {
        if args.lease.is_some() {
            return Err(not_served().into());
        }
        printer.note(NO_COORDINATION);
        return empty(listing.output, printer, cluster.server_time());
    };
    let resource = found.resource;
    let mut parts: Vec<_> = found.parts.into();
    if let Some(query) = selected(resource) {
        parts.push(cluster.list(&query).await?.items);
    }
    let now = cluster.server_time();
    let rows = Shown { lease: args.lease.as_deref(), resource }.items(&parts, now);
    match (&args.lease, rows.is_empty()) {
        (Some(lease), true) => return Err(perhaps_a_verb(lease, no_candidates(lease, &parts))),
        (None, true) => {
            check_namespace(namespace, cluster).await?;
            printer.note(&match namespace {
                _ if !parts[0].is_empty() => "no candidate matches the selector".to_owned(),
                Some(name) => format!(
                    "there are no candidates in {name}: no component there uses coordinated leader election"
                ),
                None => {
                    "there are no candidates: no component here uses coordinated leader election".to_owned()
                }
            });
            return empty(listing.output, printer, now);
        }
        _ => printer.listing(&rows, listing.output, !listing.no_headers, now)?,
    }
    let shown: BTreeSet<_> = rows.iter().map(|row| (row.namespace.as_str(), row.lease.as_str())).collect();
    let mut warnings: Vec<(String, Option<String>)> = Vec::new();
    if namespace.is_none_or(|namespace| namespace == rule::LEASE.0) {
        let wrong = controller(&Controller::among(leases_of(&parts), now));
        warnings.extend(wrong.map(|wrong| (wrong, None)));
    }
    let all = elections_of(&parts);
    for election in all.iter().filter(|it| shown.contains(&it.key())) {
        // A foreign strategy is not wrong, but another controller's business.
        let troubles = election.outlook(now).troubles;
        let troubles = troubles.iter().filter(|it| !matches!(it, Trouble::ForeignStrategy { .. }));
        warnings.extend(troubles.map(|it| {
            let (what, hint) = trouble(it, election.key(), now);
            let called = called(election.namespace, election.name);
            (format!("{called}: {what}"), Some(with_flags(&hint, cluster.flags())))
        }));
    }
    if matches!(listing.output, Format::Table | Format::Wide) {
        for (warning, hint) in &warnings {
            printer.warn(warning);
            if let Some(hint) = hint {
                printer.hint(hint);
            }
        }
    }
    Ok(ExitCode::of(warnings.is_empty() || !args.exit_code))
}

/// Nothing is no error, and a program that reads documents gets one.
fn empty(output: Format, printer: &mut Printer, now: ServerTime) -> Result<ExitCode> {
    if matches!(output, Format::Json | Format::Yaml) {
        printer.listing::<CandidateRow>(&[], output, true, now)?;
    }
    Ok(ExitCode::Done)
}

/// A mistyped verb is taken for the name of a lease.
fn perhaps_a_verb(lease: &str, error: Error) -> Error {
    let message = error.to_string();
    match (cli::similar_verb("candidates", lease), error.hint()) {
        (Some(verb), Some(hint)) => {
            let hint = format!("the command is 'kubectl lease candidates {verb}', if you mean that; {hint}");
            Error::NotFound { message, hint: Some(hint) }
        }
        _ => error,
    }
}

struct Shown<'a> {
    lease: Option<&'a str>,
    resource: Resource,
}

impl View for Shown<'_> {
    type Object = Part;
    type Item = CandidateRow;

    fn key(part: &Part) -> String {
        let metadata = part.metadata();
        format!("{}/{}", metadata.namespace, metadata.name)
    }

    fn items(&self, parts: &[Vec<Object<Part>>], now: ServerTime) -> Vec<CandidateRow> {
        let selected: Option<BTreeSet<String>> =
            parts.get(2).map(|selected| selected.iter().map(|it| Self::key(&it.value)).collect());
        let mut all: Vec<CandidateRow> = Vec::new();
        for election in elections_of(parts) {
            if self.lease.is_none_or(|lease| lease == election.name) {
                all.extend(rows(&election, &election.outlook(now), parts, self.resource));
            }
        }
        all.retain(|row| selected.as_ref().is_none_or(|selected| selected.contains(&row.key)));
        let one = all.iter().all(|row| row.namespace == all[0].namespace);
        let alone = one && all.iter().all(|row| row.lease == all[0].lease);
        for row in &mut all {
            row.alone = alone;
            row.lease_shown =
                if one { row.lease.clone() } else { format!("{}/{}", row.namespace, row.lease) };
        }
        all
    }

    fn summary(&self, rows: &[CandidateRow]) -> String {
        let leases: BTreeSet<_> = rows.iter().map(|row| (&row.namespace, &row.lease)).collect();
        let led: BTreeSet<_> = rows
            .iter()
            .filter(|row| row.candidacy.leader.is_some())
            .map(|row| (&row.namespace, &row.lease))
            .collect();
        let wrong: usize = rows.iter().map(|row| row.troubles).sum();
        let wrong = match wrong {
            0 => String::new(),
            1 => "; 1 thing is wrong: see 'kubectl lease candidates explain'".to_owned(),
            count => format!("; {count} things are wrong: see 'kubectl lease candidates explain'"),
        };
        format!("{} candidates, {} of {} leases led{wrong}", rows.len(), led.len(), leases.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_almost_a_verb_may_be_one() {
        let hint = |lease: &str| perhaps_a_verb(lease, no_candidates(lease, &[])).hint().unwrap();
        assert!(hint("explian").starts_with("the command is 'kubectl lease candidates explain'"));
        assert!(hint("set-prio").starts_with("the command is 'kubectl lease candidates set-priority'"));
        assert_eq!(hint("kube-scheduler"), "no component here uses coordinated leader election");
    }
}
