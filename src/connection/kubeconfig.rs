//! Reading and merging kubeconfig files, as client-go does.
//!
//! kube's own reader is stricter than kubectl: it takes no key that is given twice, no context without a
//! cluster, though it is never used, and an empty `current-context` for one that was chosen.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{MAIN_SEPARATOR, Path},
};

use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::error::{Error, Result};

/// Reads one file, with the paths in it made absolute; `None` where there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<Kubeconfig>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path, &error.to_string())),
    };
    let text = decode(&bytes).ok_or_else(|| unusable(path, "it is neither UTF-8 nor UTF-16"))?;
    let mut kubeconfig = parse(&text).map_err(|why| unusable(path, &why))?;
    if let Some(folder) = path.parent() {
        resolve(&mut kubeconfig, folder);
    }
    Ok(Some(kubeconfig))
}

/// Adds what the next of several files has: of what both have, the first counts, and an empty value is none.
pub(super) fn merge(mut first: Kubeconfig, next: Kubeconfig) -> Kubeconfig {
    fn add<T>(to: &mut Vec<T>, from: Vec<T>, name: impl Fn(&T) -> &str) {
        for entry in from {
            if to.iter().all(|there| name(there) != name(&entry)) {
                to.push(entry);
            }
        }
    }
    add(&mut first.clusters, next.clusters, |entry| &entry.name);
    add(&mut first.auth_infos, next.auth_infos, |entry| &entry.name);
    add(&mut first.contexts, next.contexts, |entry| &entry.name);
    first.current_context = first.current_context.filter(|name| !name.is_empty()).or(next.current_context);
    first
}

/// That there is no such file, in the system's words.
pub(super) fn missing(path: &Path) -> Error {
    let why = fs::metadata(path).err().unwrap_or_else(|| io::ErrorKind::NotFound.into());
    unusable(path, &why.to_string())
}

fn unusable(path: &Path, why: &str) -> Error {
    Error::Kubeconfig { message: format!("cannot read the kubeconfig {}: {why}", path.display()), hint: None }
}

/// The text of a file, by its byte order mark; UTF-8 without one.
fn decode(bytes: &[u8]) -> Option<String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> =
            bytes.chunks(2).map(|pair| unit([pair[0], *pair.get(1).unwrap_or(&0)])).collect();
        String::from_utf16(&units).ok()
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] | rest => String::from_utf8(rest.to_vec()).ok(),
    }
}

/// The first document of a file; nothing in it is nothing configured.
fn parse(text: &str) -> Result<Kubeconfig, String> {
    let options = || serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    let typed = serde_saphyr::from_multiple_with_options::<Option<Kubeconfig>>(text, options());
    let kubeconfig = match typed {
        Ok(documents) => documents.into_iter().next().flatten().unwrap_or_default(),
        Err(error) => {
            let documents = serde_saphyr::from_multiple_with_options::<Value>(text, options());
            let document = documents.ok().and_then(|documents| documents.into_iter().next());
            let read = document.and_then(|mut document| {
                complete(&mut document);
                serde_json::from_value(document).ok()
            });
            read.ok_or_else(|| first_line(&error))?
        }
    };
    check(&kubeconfig)?;
    Ok(kubeconfig)
}

/// The parser's report quotes the file, which may hold secrets: the first line says what and where.
fn first_line(error: &serde_saphyr::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

/// Gives entries the names that they need, empty as in client-go.
fn complete(document: &mut Value) {
    let default = |object: &mut Value, key: &str| {
        if let Some(fields) = object.as_object_mut()
            && fields.get(key).is_none_or(Value::is_null)
        {
            fields.insert(key.to_owned(), json!(""));
        }
    };
    for list in ["clusters", "users", "contexts"] {
        for entry in document.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            default(entry, "name");
            if let Some(context) = entry.get_mut("context") {
                default(context, "cluster");
            }
        }
    }
}

fn check(kubeconfig: &Kubeconfig) -> Result<(), String> {
    let given = |text: &Option<String>| text.clone().unwrap_or_default();
    let (kind, version) = (given(&kubeconfig.kind), given(&kubeconfig.api_version));
    if !matches!(kind.as_str(), "" | "Config") || !matches!(version.as_str(), "" | "v1") {
        return Err(format!("it is of kind '{kind}' and apiVersion '{version}', not Config and v1"));
    }
    let clusters = kubeconfig.clusters.iter().map(|entry| ("clusters", &entry.name));
    let users = kubeconfig.auth_infos.iter().map(|entry| ("users", &entry.name));
    let contexts = kubeconfig.contexts.iter().map(|entry| ("contexts", &entry.name));
    let mut seen = BTreeSet::new();
    match clusters.chain(users).chain(contexts).find(|entry| !seen.insert(*entry)) {
        None => Ok(()),
        Some((list, name)) => Err(format!("two of its {list} have the name '{name}'")),
    }
}

/// Makes the paths in a file absolute: they are relative to the file.
fn resolve(kubeconfig: &mut Kubeconfig, folder: &Path) {
    let absolute = |path: &mut Option<String>| {
        if let Some(relative) = path.as_ref().filter(|path| !path.is_empty() && Path::new(path).is_relative())
        {
            *path = folder.join(relative).to_str().map(str::to_owned);
        }
    };
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|entry| entry.cluster.as_mut()) {
        absolute(&mut cluster.certificate_authority);
    }
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|entry| entry.auth_info.as_mut()) {
        absolute(&mut user.client_certificate);
        absolute(&mut user.client_key);
        absolute(&mut user.token_file);
        // What has no separator in it is looked for in PATH.
        if let Some(exec) = &mut user.exec
            && exec.command.as_ref().is_some_and(|command| command.contains(MAIN_SEPARATOR))
        {
            absolute(&mut exec.command);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(kubeconfig: &Kubeconfig) -> String {
        let users: Vec<_> = kubeconfig.auth_infos.iter().map(|user| user.name.as_str()).collect();
        let contexts: Vec<_> = kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect();
        let current = kubeconfig.current_context.as_deref().unwrap_or("-");
        format!("{} {} {current}", users.join("+"), contexts.join("+"))
    }

    #[test]
    fn a_file_is_read_as_kubectl_reads_it() {
        for (text, read) in [
            ("", Ok("  -")),
            ("---\n", Ok("  -")),
            ("# nothing\n", Ok("  -")),
            ("null\n", Ok("  -")),
            ("{}", Ok("  -")),
            ("current-context: \"\"\n", Ok("  ")),
            (r#"{"apiVersion": "v1", "kind": "Config", "current-context": "a"}"#, Ok("  a")),
            ("current-context: a\r\nusers:\r\n- name: u\r\n", Ok("u  a")),
            ("current-context: a\ncurrent-context: b\n", Ok("  b")),
            ("users:\n- name: a\n  user: {token: t1, token: t2}\n", Ok("a  -")),
            ("users: null\ncontexts:\n", Ok("  -")),
            (
                "contexts:\n- name: a\n  context: {user: u}\n- name: b\n  context: {cluster: c}\n",
                Ok(" a+b -"),
            ),
            ("contexts:\n- name: a\n  context: {cluster: null}\n", Ok(" a -")),
            ("contexts:\n- name: a\n  context:\n", Ok(" a -")),
            ("users:\n- user: {token: x}\n", Ok("  -")),
            ("unheard-of: {of: [1, 2]}\nusers:\n- name: u\n  user: {unheard-of: true}\n", Ok("u  -")),
            ("current-context: a\n---\ncurrent-context: b\nusers:\n- name: u\n", Ok("  a")),
            ("x: &u {token: t1}\nusers:\n- name: u\n  user: *u\n", Ok("u  -")),
            ("users:\n- name: u\n- name: u\n", Err("two of its users")),
            ("kind: Pod\napiVersion: v1\n", Err("of kind 'Pod'")),
            ("apiVersion: v2\n", Err("apiVersion 'v2'")),
            ("users: 7\n", Err("")),
            ("users: [\n", Err("")),
            ("- a\n", Err("")),
            ("token: secret\nusers: 'secret'\n", Err("")),
        ] {
            match (parse(text), read) {
                (Ok(kubeconfig), Ok(expected)) => assert_eq!(names(&kubeconfig), expected, "{text}"),
                (Err(why), Err(expected)) => {
                    assert!(why.contains(expected) && !why.contains("secret"), "{text}: {why}");
                }
                (other, _) => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn of_two_files_the_first_that_says_something_counts() {
        let read = |text: &str| parse(text).unwrap();
        for (first, next, merged) in [
            ("current-context: a", "current-context: b", "  a"),
            ("current-context: \"\"", "current-context: b", "  b"),
            ("", "current-context: b", "  b"),
            ("users: [{name: a}]", "users: [{name: b}, {name: a}]", "a+b  -"),
        ] {
            assert_eq!(names(&merge(read(first), read(next))), merged, "{first} {next}");
        }
        // Entries are not mixed.
        let merged = merge(
            read("users: [{name: a, user: {username: u}}]"),
            read("users: [{name: a, user: {username: v, as: w}}]"),
        );
        let user = merged.auth_infos[0].auth_info.as_ref().unwrap();
        assert_eq!((user.username.as_deref(), user.impersonate.as_deref()), (Some("u"), None));
    }

    #[test]
    fn byte_order_marks_are_no_text() {
        let utf16 = |bytes: fn(u16) -> [u8; 2]| {
            "\u{feff}kind: Config".encode_utf16().flat_map(bytes).collect::<Vec<u8>>()
        };
        for bytes in [
            b"kind: Config".to_vec(),
            b"\xEF\xBB\xBFkind: Config".to_vec(),
            utf16(u16::to_le_bytes),
            utf16(u16::to_be_bytes),
        ] {
            assert_eq!(decode(&bytes).as_deref(), Some("kind: Config"));
        }
        assert_eq!(decode(b"\xC3("), None);
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let mut kubeconfig = parse(
            "clusters: [{name: c, cluster: {certificate-authority: ca.crt}}]\n\
             users: [{name: u, user: {client-certificate: ../u.crt, client-key: /k, tokenFile: '',
                exec: {command: ./plugin}}}, {name: v, user: {exec: {command: plugin}}}]",
        )
        .unwrap();
        resolve(&mut kubeconfig, Path::new("/home/me"));
        let user = kubeconfig.auth_infos[0].auth_info.as_ref().unwrap();
        let exec = |n: usize| {
            let user = kubeconfig.auth_infos[n].auth_info.as_ref();
            user.and_then(|user| user.exec.as_ref()).and_then(|exec| exec.command.as_deref())
        };
        let authority = kubeconfig.clusters[0].cluster.as_ref().unwrap().certificate_authority.as_deref();
        assert_eq!(authority, Some("/home/me/ca.crt"));
        assert_eq!(user.client_certificate.as_deref(), Some("/home/me/../u.crt"));
        assert_eq!((user.client_key.as_deref(), user.token_file.as_deref()), (Some("/k"), Some("")));
        assert_eq!((exec(0), exec(1)), (Some("/home/me/./plugin"), Some("plugin")));
    }
}
