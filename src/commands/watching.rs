//! Showing lists of objects, once or with `--watch`.
//!
//! What a view shows while watching is worked out anew at each event and each second, so that what
//! only the passing of time changes (alive, late, silent) changes too.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::future::try_join_all;
use jiff::SignedDuration;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use super::remarks;
use crate::{
    cli::Listing,
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Item, Printer,
        listing::changes,
        screen::{Link, Screen},
    },
};
use kube_leases::{
    client::{
        Cluster, Object, Query, Readable,
        watch::{Follow, LastHeard, Watch, WatchEvent},
    },
    rules::time::{ServerTime, judged_at},
};

/// A lease that is followed here changes every few seconds. What changes more rarely is asked about
/// again after this long, so that every source that is well answers at least this often.
const QUIET: Duration = Duration::from_secs(15);
/// So far beyond the last word from a source is the view still judged: that long, and a moment for
/// the answer. A kube-apiserver that had renewed in time by then is not late yet.
const PATIENCE: SignedDuration = SignedDuration::from_secs(16);
const TOGETHER: Duration = Duration::from_millis(200);

/// What a list command shows of the objects it reads.
pub trait View {
    type Object: Readable;
    type Item: Item;

    /// What tells the objects of one source apart.
    fn key(object: &Self::Object) -> String;

    /// What to show of the objects of each source, in the order of the queries.
    fn items(&self, sources: &[Vec<Object<Self::Object>>], now: ServerTime) -> Vec<Self::Item>;

    /// Whether `items` compares times of this source's objects with `now`: `now` is never further ahead of the
    /// last word from such a source than [`PATIENCE`]. The others may be answered late.
    fn is_timed(&self, _: &Query) -> bool {
        true
    }

    /// What is to be known beside them.
    fn remarks(&self, _: &[Vec<Object<Self::Object>>], _: &[Self::Item]) -> Vec<String> {
        Vec::new()
    }

    /// Told before `items` when what happened meanwhile was not seen: at the start, and after a gap.
    fn missed(&self) {}

    /// The whole of it in a few words.
    fn summary(&self, items: &[Self::Item]) -> String;
}

/// Reads all sources at once.
pub async fn gather<T: Readable>(cluster: &Cluster, queries: &[Query]) -> Result<Vec<Vec<Object<T>>>> {
    let lists = try_join_all(queries.iter().map(|query| cluster.list::<T>(query))).await?;
    Ok(lists.into_iter().map(|list| list.items).collect())
}

/// One source of objects, as far as it is known.
struct Source<T> {
    objects: BTreeMap<String, Object<T>>,
    begun: bool,
    lost: Option<(ServerTime, kube_leases::Error)>,
}

impl<T> Default for Source<T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), begun: false, lost: None }
    }
}

/// Shows the view until Ctrl-C.
pub async fn run<V: View>(
    view: &V,
    queries: &[Query],
    listing: &Listing,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let contacts: Vec<Arc<LastHeard>> = queries.iter().map(|_| Arc::default()).collect();
    let mut watch = Watch::new(cluster);
    for (n, query) in queries.iter().enumerate() {
        watch = watch.and_contact(n, query.clone(), Follow::quiet(QUIET), contacts[n].clone());
    }
    let watching = async {
        let mut screen = Screen::new(printer, listing.output, !listing.no_headers);
        let mut sources: Vec<Source<V::Object>> = queries.iter().map(|_| Source::default()).collect();
        let mut shown: Vec<V::Item> = Vec::new();
        let mut begun = false;
        let mut second = interval(Duration::from_secs(1));
        second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut batch: Vec<_> = tokio::select! {
                event = watch.next() => vec![event],
                _ = second.tick(), if begun => Vec::new(),
            };
            if !batch.is_empty() && begun {
                // What belongs together arrives a moment apart, such as the old lease's end and
                // the new one's beginning in a restart: it is shown as one.
                let until = Instant::now() + TOGETHER;
                while let Ok(event) = timeout_at(until, watch.next()).await {
                    batch.push(event);
                }
            }
            // Whatever woke us: a contact counts only together with what it brought.
            batch.extend(std::iter::from_fn(|| watch.try_next()));
            for (source, event) in batch {
                let last = contacts[source].last().unwrap_or_else(|| cluster.server_time());
                if matches!(event, WatchEvent::Snapshot(_)) {
                    view.missed();
                }
                apply::<V>(&mut sources[source], event, last)?;
            }
            begun = sources.iter().all(|source| source.begun);
            if !begun {
                continue;
            }
            let link = match sources
                .iter()
                .filter_map(|source| source.lost.as_ref())
                .min_by_key(|(since, _)| *since)
            {
                None => Link::Up,
                Some((since, error)) => Link::Down { since: *since, why: error.to_string() },
            };
            let timed = contacts.iter().zip(queries).filter(|(_, query)| view.is_timed(query));
            let timed = timed.filter_map(|(contact, _)| contact.last());
            let now = judged_at(cluster.server_time(), timed, PATIENCE);
            let objects: Vec<Vec<_>> =
                sources.iter().map(|source| source.objects.values().cloned().collect()).collect();
            let items = view.items(&objects, now);
            for remark in remarks(cluster) {
                screen.warn(remark);
            }
            screen.remark(view.remarks(&objects, &items));
            screen.show(&items, &changes(&shown, &items, now), &link, &view.summary(&items), now)?;
            shown = items;
        }
    };
    tokio::select! {
        outcome = watching => outcome,
        _ = tokio::signal::ctrl_c() => Err(Error::Interrupted),
    }
}

fn apply<V: View>(
    source: &mut Source<V::Object>,
    event: WatchEvent<V::Object>,
    last_contact: ServerTime,
) -> Result<()> {
    match event {
        WatchEvent::Snapshot(all) => {
            source.objects = all.into_iter().map(|object| (V::key(&object.value), object)).collect();
            source.begun = true;
            source.lost = None;
        }
        WatchEvent::Changed(object) => {
            source.objects.insert(V::key(&object.value), object);
        }
        WatchEvent::Gone(object) => {
            source.objects.remove(&V::key(&object.value));
        }
        WatchEvent::Lost(error) => {
            source.lost = Some((last_contact, error));
        }
        WatchEvent::Failed(error) => return Err(error.into()),
    }
    Ok(())
}
