//! What a list command shows, said once for every format and for `--watch`.

use serde_json::{Map, Value, json};

use super::{structured, table::Cell, table::Tone};
use kube_leases::rules::time::ServerTime;

/// `-o`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Table,
    Wide,
    Json,
    Yaml,
    Name,
}

impl Format {
    pub(super) fn document(self, value: &Value) -> String {
        match self {
            Self::Yaml => structured::yaml(value),
            _ => structured::json(value),
        }
    }

    pub(super) fn list<I: Item>(items: &[I], now: ServerTime) -> Value {
        let mut fields = Map::new();
        fields.insert("serverTime".into(), json!(now.0));
        fields.insert("items".into(), items.iter().map(|item| Value::Object(item.document())).collect());
        structured::document(&format!("{}List", I::KIND), fields)
    }
}

/// One row of a list, and one document of it.
pub trait Item: Clone {
    /// The kind of the document; the list's kind is this and `List`.
    const KIND: &'static str;
    /// Whether the rows are sentences, to be wrapped where the terminal ends.
    const WRAPS: bool = false;

    fn headers(wide: bool) -> &'static [&'static str];

    fn cells(&self, now: ServerTime, wide: bool) -> Vec<Cell>;

    /// Where one thing takes several lines.
    fn rows(&self, now: ServerTime, wide: bool) -> Vec<Vec<Cell>> {
        vec![self.cells(now, wide)]
    }

    /// The derived fields and the API object.
    fn document(&self) -> Map<String, Value>;

    /// `resource.group/name`, for `-o name`.
    fn resource(&self) -> String;

    /// What makes two rows of different moments the same thing.
    fn key(&self) -> &str;

    /// What `--watch` prints, if this is a change worth telling. At least one side is
    /// there; without `before` the item is new, without `after` it is gone.
    fn change(before: Option<&Self>, after: Option<&Self>, now: ServerTime) -> Option<Change>;
}

/// Something that happened while watching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The name of the item that changed.
    pub subject: String,
    /// One word for it, the same for the same kind of change.
    pub what: &'static str,
    pub detail: String,
    pub tone: Tone,
}

/// The changes from one view to the next, in the order of the rows, the departed ones last.
pub fn changes<'a, I: Item>(before: &'a [I], after: &'a [I], now: ServerTime) -> Vec<(Change, &'a I)> {
    let find = |items: &'a [I], key: &str| items.iter().find(|item| item.key() == key);
    let present = after.iter().filter_map(|item| {
        let change = I::change(find(before, item.key()), Some(item), now)?;
        Some((change, item))
    });
    let departed = before.iter().filter(|item| find(after, item.key()).is_none()).filter_map(|item| {
        let change = I::change(Some(item), None, now)?;
        Some((change, item))
    });
    present.chain(departed).collect()
}
