//! A stub of a kube-apiserver that expects certain requests and no others: one API call more, or one less, is a
//! failing test.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::stub::{Reply, Stub};

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method and the path, without the query.
    pub line: String,
    pub query: String,
    /// What was sent; null if nothing was.
    pub body: Value,
}

impl Request {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut words = head.lines().next().unwrap().split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
        Self { line: format!("{method} {path}"), query: query.to_owned(), body }
    }

    pub fn is_write(&self) -> bool {
        !self.line.starts_with("GET ")
    }
}

/// A request that has to come once, and what is answered to it.
pub struct Expected {
    line: String,
    answer: Box<dyn Fn(&Request) -> Reply + Send>,
}

/// Of several with the same method and path the first is answered first. Those of different paths may come in any
/// order: what is read at once is.
pub fn on(line: impl Into<String>, answer: impl Fn(&Request) -> Reply + Send + 'static) -> Expected {
    Expected { line: line.into(), answer: Box::new(answer) }
}

/// This object.
pub fn found(object: Value) -> impl Fn(&Request) -> Reply + Send {
    move |_| Reply::Whole(200, "", object.clone())
}

/// These objects.
pub fn listed(items: &[Value]) -> impl Fn(&Request) -> Reply + Send + 'static {
    found(json!({ "metadata": { "resourceVersion": "1000" }, "items": items }))
}

/// A refusal.
pub fn refused(code: u16, reason: &str, message: &str) -> impl Fn(&Request) -> Reply + Send + 'static {
    let status =
        json!({ "kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message });
    move |request| {
        let mut status = status.clone();
        // The object that it is about, as a kube-apiserver says it.
        status["details"] = json!({ "name": request.line.rsplit('/').next() });
        Reply::Whole(code, "", status)
    }
}

/// There is no such object.
pub fn missing() -> impl Fn(&Request) -> Reply + Send {
    refused(404, "NotFound", "not found")
}

/// What is written is not for the version that there is.
pub fn conflict() -> impl Fn(&Request) -> Reply + Send {
    refused(409, "Conflict", "the object has been modified")
}

/// What was sent, as a merge patch of `before`, in this version.
pub fn written(before: Value, version: &'static str) -> impl Fn(&Request) -> Reply + Send {
    move |request| {
        let mut after = before.clone();
        merge(&mut after, &request.body);
        after["metadata"]["resourceVersion"] = json!(version);
        Reply::Whole(200, "", after)
    }
}

fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    let into = into.as_object_mut().unwrap();
    for (name, value) in patch {
        if value.is_null() {
            into.remove(name);
        } else {
            merge(into.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[derive(Default)]
struct State {
    expected: Vec<Expected>,
    asked: Vec<Request>,
    unexpected: Vec<Request>,
}

/// A running one.
#[must_use = "it has to be asked whether all that was expected has come"]
pub struct Scripted {
    pub stub: Stub,
    state: Arc<Mutex<State>>,
}

impl Scripted {
    pub fn start(expected: Vec<Expected>) -> Self {
        let state = Arc::new(Mutex::new(State { expected, ..State::default() }));
        let shared = Arc::clone(&state);
        let stub = Stub::start(move |_, text| {
            let request = Request::read(text);
            let mut state = shared.lock().unwrap();
            let Some(n) = state.expected.iter().position(|expected| expected.line == request.line) else {
                state.unexpected.push(request);
                // Not one that is tried again.
                return Reply::Whole(
                    400,
                    "",
                    json!({ "kind": "Status", "code": 400, "message": "unexpected" }),
                );
            };
            let expected = state.expected.remove(n);
            state.asked.push(request.clone());
            (expected.answer)(&request)
        });
        Self { stub, state }
    }

    /// All requests, in the order in which they came.
    ///
    /// # Panics
    /// If one came that was not expected, or one that was expected did not.
    #[track_caller]
    pub fn done(self) -> Vec<Request> {
        let state = self.state.lock().unwrap();
        assert!(
            state.unexpected.is_empty(),
            "not expected: {:#?}\nafter {:#?}",
            state.unexpected,
            state.asked
        );
        let left: Vec<&str> = state.expected.iter().map(|expected| expected.line.as_str()).collect();
        assert!(left.is_empty(), "never asked: {left:#?}, but {:#?}", state.asked);
        state.asked.clone()
    }

    /// As [`Scripted::done`], only what writes.
    #[track_caller]
    pub fn writes(self) -> Vec<Request> {
        self.done().into_iter().filter(Request::is_write).collect()
    }
}
