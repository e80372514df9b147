//! `--watch`, for any list command: what a view shows is worked out anew at each event and each
//! second, so that what only the passing of time changes (alive, late, silent) changes too.

use std::{collections::BTreeMap, time::Duration};

use serde::de::DeserializeOwned;
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, sleep},
};

use crate::{
    cli::Listing,
    cluster::{
        Cluster, Object, Query,
        watch::{Event, follow},
    },
    domain::time::ServerTime,
    error::{Error, Result},
    exit::ExitCode,
    output::{
        Item, Printer,
        listing::changes,
        screen::{Link, Screen},
    },
};

const TOGETHER: Duration = Duration::from_millis(200);

/// What a list command shows of the objects it reads.
pub trait View {
    type Object: DeserializeOwned;
    type Item: Item;

    /// What tells the objects apart.
    fn key(object: &Self::Object) -> &str;

    fn items<'a>(
        &self,
        objects: impl Iterator<Item = &'a Object<Self::Object>>,
        now: ServerTime,
    ) -> Vec<Self::Item>
    where
        Self::Object: 'a;

    /// The whole of it in a few words.
    fn summary(&self, items: &[Self::Item]) -> String;
}

/// Shows the view until Ctrl-C.
pub async fn run<V: View>(
    view: &V,
    query: &Query,
    listing: &Listing,
    cluster: &Cluster,
    printer: &mut Printer,
) -> Result<ExitCode> {
    let (sender, mut events) = mpsc::channel(64);
    let watching = async {
        let mut screen = Screen::new(printer, listing.output, !listing.no_headers);
        let mut objects: BTreeMap<String, Object<V::Object>> = BTreeMap::new();
        let mut shown: Vec<V::Item> = Vec::new();
        let mut link = Link::Up;
        let mut begun = false;
        let mut second = interval(Duration::from_secs(1));
        second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                _ = second.tick(), if begun => None,
            };
            let mut next = event;
            if next.is_some() && begun {
                // What belongs together arrives a moment apart, such as the old lease's end and
                // the new one's beginning in a restart: it is shown as one.
                sleep(TOGETHER).await;
            }
            while let Some(event) = next {
                match event {
                    Event::Snapshot(all) => {
                        objects = all
                            .into_iter()
                            .map(|object| (V::key(&object.value).to_owned(), object))
                            .collect();
                        link = Link::Up;
                        begun = true;
                    }
                    Event::Changed(object) => {
                        objects.insert(V::key(&object.value).to_owned(), object);
                    }
                    Event::Gone(object) => {
                        objects.remove(V::key(&object.value));
                    }
                    Event::Lost(error) => {
                        // Nothing is concluded from a silence that is our own.
                        let since = match link {
                            Link::Down { since, .. } => since,
                            Link::Up => cluster.server_time(),
                        };
                        link = Link::Down { since, why: error.to_string() };
                    }
                    Event::Failed(error) => return Err(error),
                }
                next = events.try_recv().ok();
            }
            let now = match link {
                Link::Up => cluster.server_time(),
                Link::Down { since, .. } => since,
            };
            let items = view.items(objects.values(), now);
            screen.show(&items, &changes(&shown, &items, now), &link, &view.summary(&items), now)?;
            shown = items;
        }
    };
    let following = async {
        follow(cluster, query, sender).await;
        // Its last event says why it ended, and ends the other side.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        outcome = watching => outcome,
        () = following => Ok(ExitCode::Done),
        _ = tokio::signal::ctrl_c() => Err(Error::Interrupted),
    }
}
