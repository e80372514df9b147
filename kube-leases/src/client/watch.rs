//! Following a set of objects over time.
//!
//! A list, then a watch from where the list ended, then again whatever is needed to stay true: a
//! watch that the server ends in order is resumed; one that breaks, or whose resource version is
//! too old (410), begins with a new list. The first failure is the caller's (a wrong name or a
//! missing permission should end the command), later ones are events, because the servers watched may
//! be the very ones that restart. A 401 or 403 of what has worked before ends it only if it lasts
//! (see [`Refusal`]).
//!
//! A connection can die without a word. So a silence that is longer than what is followed would
//! make by itself is checked by a new list, before anything is concluded from it; and [`LastHeard`] tells
//! how new what was sent is.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{
    Cluster, Query, Readable, Refusal, Remark, Resource, lock,
    object::{ApiStatus, Object},
    single::Address,
};
use crate::{
    error::{Error, Permission, Result},
    rules::time::ServerTime,
};

/// How long that check may take, and the opening of a watch.
const CHECK: Duration = Duration::from_secs(10);
/// How late a timer may be on a busy machine.
const SLACK: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);
/// A line of a watch longer than this is not an event of any object we follow.
const LONGEST_LINE: usize = 16 << 20;

/// What happened to the objects, or to the view of them.
#[derive(Debug)]
pub enum WatchEvent<T> {
    /// All objects, as of now: at the start, and after a gap.
    Snapshot(Vec<Object<T>>),
    /// An object was added or modified; this is how it is now.
    Changed(Object<T>),
    /// An object was deleted, or no longer matches the selectors; this is how it was last.
    Gone(Object<T>),
    /// The connection is lost and being tried again. A snapshot follows when it is back.
    Lost(Error),
    /// It cannot go on: nothing follows.
    Failed(Error),
}

/// When there was last word from the server about what is followed: all that the server had to tell
/// by then has been sent. `None` before the first word, and where there will never be any.
#[derive(Debug, Default)]
pub struct LastHeard(Mutex<Option<ServerTime>>);

impl LastHeard {
    /// The time of that word, by the server's clock.
    pub fn last(&self) -> Option<ServerTime> {
        *lock(&self.0)
    }

    fn renew(&self, at: ServerTime) {
        *lock(&self.0) = Some(at);
    }

    /// Nothing more is to be heard.
    fn forget(&self) {
        *lock(&self.0) = None;
    }
}

/// Objects that are followed: what happens to them, one event after the other.
///
/// Several queries may be followed at once; each event comes with the name that its query was given. It is followed
/// only while [`Watch::next`] is awaited: what happens meanwhile waits.
pub struct Watch<'a, S, T> {
    cluster: &'a Cluster,
    following: FuturesUnordered<BoxFuture<'a, ()>>,
    sender: mpsc::Sender<(S, WatchEvent<T>)>,
    events: mpsc::Receiver<(S, WatchEvent<T>)>,
}

/// How a query is followed.
#[derive(Clone, Copy, Debug)]
pub struct Follow {
    quiet: Duration,
    goes_on: bool,
    again: Option<(Duration, Duration)>,
}

impl Follow {
    /// After `quiet` without an event (the server sends a bookmark each minute) the connection is checked.
    pub fn quiet(quiet: Duration) -> Self {
        Self { quiet, goes_on: false, again: None }
    }

    /// For the next step of a command: where such objects could be listed before, the first failure is one of what
    /// has worked.
    #[must_use]
    pub fn going_on(self) -> Self {
        Self { goes_on: true, ..self }
    }

    /// Begins again this long after it has failed for good, and says so each time. As long as there is no
    /// permission, it backs off up to `longest`.
    #[must_use]
    pub fn retry_after(self, pause: Duration, longest: Duration) -> Self {
        Self { again: Some((pause, longest)), ..self }
    }
}

impl<'a, S: Copy + Send + 'a, T: Readable + 'a> Watch<'a, S, T> {
    /// Follows nothing yet.
    pub fn new(cluster: &'a Cluster) -> Self {
        let (sender, events) = mpsc::channel(64);
        Self { cluster, following: FuturesUnordered::new(), sender, events }
    }

    /// Follows the objects of one query.
    pub fn of(cluster: &'a Cluster, source: S, query: Query, how: Follow) -> Self {
        Self::new(cluster).and(source, query, how)
    }

    /// Follows the objects of this query too.
    #[must_use]
    pub fn and(self, source: S, query: Query, how: Follow) -> Self {
        self.and_contact(source, query, how, Arc::default())
    }

    /// Follows the objects of this query too, and keeps `contact` up to date.
    #[must_use]
    pub fn and_contact(self, source: S, query: Query, how: Follow, contact: Arc<LastHeard>) -> Self {
        let (cluster, events) = (self.cluster, self.sender.clone());
        self.following.push(Box::pin(async move {
            let mut backoff = Duration::ZERO;
            loop {
                let first = !(how.goes_on && cluster.has_listed(&query));
                let ended = follow(cluster, &query, how.quiet, source, &events, &contact, first).await;
                let Some((pause, longest)) = how.again else { break };
                if ended.listed {
                    backoff = Duration::ZERO;
                }
                if ended.forbidden {
                    backoff = (backoff.max(pause) * 2).min(longest);
                }
                sleep(backoff.max(pause)).await;
            }
        }));
        self
    }

    /// What happened next. After the last event, which says why nothing follows, it never comes back.
    pub async fn next(&mut self) -> (S, WatchEvent<T>) {
        loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => return event,
                Some(()) = self.following.next() => {}
                else => std::future::pending().await,
            }
        }
    }

    /// What has happened already, if anything has.
    pub fn try_next(&mut self) -> Option<(S, WatchEvent<T>)> {
        self.events.try_recv().ok()
    }
}

/// How following a query ended.
#[derive(Default)]
struct WatchEnded {
    /// The objects could be listed.
    listed: bool,
    /// For want of permission.
    forbidden: bool,
}

/// Follows the objects of `query`, sending what happens, each with `source`. `first` is whether the first failure
/// ends it.
async fn follow<S: Copy, T: Readable>(
    cluster: &Cluster,
    query: &Query,
    quiet: Duration,
    source: S,
    events: &mpsc::Sender<(S, WatchEvent<T>)>,
    contact: &LastHeard,
    mut first: bool,
) -> WatchEnded {
    let mut ended = WatchEnded::default();
    let mut pause = FIRST_PAUSE;
    let mut refusal = Refusal::default();
    let mut opened = false;
    // A 403 is not an empty list: it may pass.
    let needed = Query { optional: false, ..query.clone() };
    loop {
        // The list is at least as new as the question, however long the answer takes.
        let asked = cluster.server_time();
        let list = cluster.list(&needed);
        let list = if first { list.await } else { soon(cluster, list).await };
        // A refusal of a watch may pass only if one was allowed before.
        let mut may_pass = true;
        let failure = match list {
            Ok(list) => {
                first = false;
                ended.listed = true;
                pause = FIRST_PAUSE;
                let version = list.resource_version;
                if events.send((source, WatchEvent::Snapshot(list.items))).await.is_err() {
                    return ended;
                }
                contact.renew(asked);
                match watch(cluster, query, version, quiet, source, events, contact).await {
                    End::Closed => return ended,
                    End::Stale => {
                        opened = true;
                        continue;
                    }
                    End::Broken(error) => {
                        opened = true;
                        error
                    }
                    End::NotOpened(error) => {
                        may_pass = opened;
                        error
                    }
                }
            }
            // The time ran out while this process, or the machine, was stopped: the server did not fail.
            Err(error) if ran_out_while_stopped(cluster, asked, &error) => continue,
            Err(error) => error,
        };
        let refused = matches!(
            failure,
            Error::Forbidden { .. } | Error::Unauthenticated { .. } | Error::Credential { .. }
        );
        let passing = refused && !first && may_pass && refusal.may_pass(&failure);
        if first || refused && !passing {
            if let Error::Forbidden { message, needs: Permission { verbs: "list", .. } } = &failure
                && query.optional
            {
                // Told to do without what may not be read; that it could be before is said in any case.
                let refused = || Remark::Refused { message: message.clone() };
                let remark = query.remark.clone().or_else(|| (!first).then(refused));
                if let Some(remark) = remark {
                    cluster.remark(remark);
                }
                contact.forget();
                let _ = events.send((source, WatchEvent::Snapshot(Vec::new()))).await;
                return ended;
            }
            let failure = match failure {
                Error::Forbidden { message, needs } if !first => {
                    Error::Forbidden { message, needs: Permission { verbs: "list,watch", ..needs } }
                }
                failure => failure,
            };
            ended.forbidden = matches!(failure, Error::Forbidden { .. });
            let _ = events.send((source, WatchEvent::Failed(failure))).await;
            return ended;
        }
        if events.send((source, WatchEvent::Lost(failure))).await.is_err() {
            return ended;
        }
        // A server that refuses is up: it is a matter of milliseconds.
        sleep(if passing { FIRST_PAUSE } else { pause }).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Follows one object until `judge` has an answer. It is asked at each change and each second, with
/// `None` where the object does not exist; but not while the connection is lost.
pub async fn until<T: Readable, R>(
    cluster: &Cluster,
    resource: Resource,
    at: &Address,
    quiet: Duration,
    mut judge: impl FnMut(Option<&Object<T>>) -> Option<R>,
) -> Result<R> {
    let query = Query::new(resource)
        .namespace(&at.namespace)
        .select(None, Some(&format!("metadata.name={}", at.name)));
    until_all(cluster, &query, quiet, |_| String::new(), |objects| judge(objects.values().next())).await
}

/// The same for all objects of a query, each by its key.
pub async fn until_all<T: Readable, R>(
    cluster: &Cluster,
    query: &Query,
    quiet: Duration,
    key: impl Fn(&T) -> String,
    mut judge: impl FnMut(&BTreeMap<String, Object<T>>) -> Option<R>,
) -> Result<R> {
    let mut watch = Watch::of(cluster, (), query.clone(), Follow::quiet(quiet).going_on());
    let mut known: Option<BTreeMap<String, Object<T>>> = None;
    loop {
        let event = tokio::select! {
            ((), event) = watch.next() => Some(event),
            () = sleep(Duration::from_secs(1)), if known.is_some() => None,
        };
        match event {
            None => {}
            Some(WatchEvent::Failed(error)) => return Err(error),
            Some(WatchEvent::Lost(_)) => known = None,
            Some(WatchEvent::Snapshot(objects)) => {
                let all = known.insert(BTreeMap::new());
                for object in objects {
                    all.entry(key(&object.value)).or_insert(object);
                }
            }
            Some(WatchEvent::Changed(object)) => {
                known.get_or_insert_default().insert(key(&object.value), object);
            }
            Some(WatchEvent::Gone(object)) => {
                known.get_or_insert_default().remove(&key(&object.value));
            }
        }
        if let Some(answer) = known.as_ref().and_then(&mut judge) {
            return Ok(answer);
        }
    }
}

/// Whether a request ran out of time, and took far longer than that time.
fn ran_out_while_stopped(cluster: &Cluster, asked: ServerTime, error: &Error) -> bool {
    matches!(error, Error::NoAnswer { after, .. } if was_stopped(cluster, asked, *after))
}

/// Whether a wait took longer than its time-out allows: this process, or the machine, was stopped meanwhile.
fn was_stopped(cluster: &Cluster, since: ServerTime, allowed: Duration) -> bool {
    cluster.server_time().since(since.0).unsigned_abs() > allowed + SLACK
}

/// What is not answered soon counts as a lost connection.
async fn soon<T>(cluster: &Cluster, answer: impl Future<Output = Result<T>>) -> Result<T> {
    timeout(CHECK, answer)
        .await
        .unwrap_or_else(|_| Err(Error::NoAnswer { server: cluster.server.clone(), after: CHECK }))
}

enum End {
    /// The receiver of the events was dropped.
    Closed,
    /// A new list is needed: the version is too old, or it has been quiet for too long.
    Stale,
    Broken(Error),
    /// There was not even one connection.
    NotOpened(Error),
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a serde_json::value::RawValue,
}

#[derive(Deserialize)]
struct Versioned {
    metadata: super::object::ListMetadata,
}

/// Watches from `version` on, through as many connections as that takes.
async fn watch<S: Copy, T: Readable>(
    cluster: &Cluster,
    query: &Query,
    mut version: String,
    quiet: Duration,
    source: S,
    events: &mpsc::Sender<(S, WatchEvent<T>)>,
    contact: &LastHeard,
) -> End {
    let mut opened = false;
    loop {
        let asked = cluster.server_time();
        let response = match soon(cluster, cluster.open_watch(query, &version)).await {
            Ok(response) => response,
            Err(Error::Api { code: 410, .. }) => return End::Stale,
            Err(error) if ran_out_while_stopped(cluster, asked, &error) => return End::Stale,
            Err(error) if opened => return End::Broken(error),
            Err(error) => return End::NotOpened(error),
        };
        opened = true;
        // Opened while this process, or the machine, was stopped: what came with it is as old, see below.
        if was_stopped(cluster, asked, CHECK) {
            return End::Stale;
        }
        let mut body = response.into_body().into_data_stream().map_err(|error| cluster.unreachable(&error));
        let mut buffer = BytesMut::new();
        let mut events_seen = 0_u32;
        loop {
            let waiting_since = cluster.server_time();
            let chunk = tokio::select! {
                chunk = timeout(quiet, body.next()) => chunk,
                () = events.closed() => return End::Closed,
            };
            let now = cluster.server_time();
            // What the connection has kept meanwhile says nothing about now.
            let stopped = was_stopped(cluster, waiting_since, quiet);
            match chunk {
                Err(_) => return End::Stale,
                Ok(_) if stopped => return End::Stale,
                Ok(None) => break,
                Ok(Some(Err(error))) => return End::Broken(error),
                Ok(Some(Ok(bytes))) => buffer.extend_from_slice(&bytes),
            }
            if buffer.len() > LONGEST_LINE {
                return End::Broken(bad_line(cluster, "a line of a watch has no end"));
            }
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line = buffer.split_to(end + 1).freeze();
                events_seen += 1;
                match take(query.resource, &line) {
                    Ok(ReadLine::Event(event, at)) => {
                        version = at;
                        if events.send((source, event)).await.is_err() {
                            return End::Closed;
                        }
                    }
                    Ok(ReadLine::Bookmark(at)) => version = at,
                    Ok(ReadLine::Refusal(status)) if status.code == 410 => return End::Stale,
                    Ok(ReadLine::Refusal(status)) => {
                        return End::Broken(Error::Api {
                            code: status.code,
                            reason: status.reason,
                            message: status.message,
                            retry_after: None,
                        });
                    }
                    Err(error) => return End::Broken(bad_line(cluster, &error.to_string())),
                }
            }
            contact.renew(now);
        }
        // A server that takes a watch only to end it at once is not asked again without a pause.
        if events_seen == 0 {
            sleep(FIRST_PAUSE).await;
        }
    }
}

enum ReadLine<T> {
    Event(WatchEvent<T>, String),
    Bookmark(String),
    Refusal(ApiStatus),
}

fn take<T: Readable>(resource: Resource, whole: &Bytes) -> Result<ReadLine<T>, serde_json::Error> {
    let line: Line<'_> = serde_json::from_slice(whole)?;
    let text = line.object.get();
    let object = || Object::read(resource, whole.slice_ref(text.as_bytes()));
    if line.r#type == "ERROR" {
        return Ok(ReadLine::Refusal(serde_json::from_str(text)?));
    }
    let Versioned { metadata } = serde_json::from_str(text)?;
    let version = metadata.resource_version;
    Ok(match line.r#type {
        "BOOKMARK" => ReadLine::Bookmark(version),
        "DELETED" => ReadLine::Event(WatchEvent::Gone(object()?), version),
        _ => ReadLine::Event(WatchEvent::Changed(object()?), version),
    })
}

fn bad_line(cluster: &Cluster, why: &str) -> Error {
    Error::BadAnswer { server: cluster.server.clone(), cause: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{client::LEASES, rules::lease::Lease};

    fn taken(line: &str) -> ReadLine<Lease> {
        take(LEASES, &Bytes::copy_from_slice(line.as_bytes())).unwrap()
    }

    #[test]
    fn the_lines_of_a_watch_are_told_apart() {
        let object = r#"{"metadata":{"name":"a","resourceVersion":"7"},"spec":{}}"#;
        for kind in ["ADDED", "MODIFIED"] {
            let line = format!(r#"{{"type":"{kind}","object":{object}}}"#);
            assert!(
                matches!(taken(&line), ReadLine::Event(WatchEvent::Changed(o), v) if o.value.metadata.name == "a" && v == "7")
            );
        }
        let line = format!(r#"{{"type":"DELETED","object":{object}}}"#);
        assert!(matches!(taken(&line), ReadLine::Event(WatchEvent::Gone(_), v) if v == "7"));
        let line = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#;
        assert!(matches!(taken(line), ReadLine::Bookmark(v) if v == "9"));
        let line = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
        assert!(matches!(taken(line), ReadLine::Refusal(status) if status.code == 410));
        assert!(take::<Lease>(LEASES, &Bytes::from("not json")).is_err());
    }
}
