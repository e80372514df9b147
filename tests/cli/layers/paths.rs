//! The paths that a file of Rust names, wherever they are: in `use`, in types, in attributes.

use std::collections::BTreeSet;

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Import {
    /// Something of the same crate, from its root on.
    Own(Vec<String>),
    /// Another crate.
    Crate(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// `::`
    Of,
    Mark(char),
}

/// The tokens of a text without its comments, and of its literals only strings that are paths of this crate, as
/// serde's `with` has them.
fn tokens(text: &str) -> Vec<Token> {
    let c: Vec<char> = text.chars().collect();
    let at = |n: usize| c.get(n).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut n) = (Vec::new(), 0);
    while n < c.len() {
        // Where a raw string begins: behind r, and any number of #.
        let hashes = c[n + 1..].iter().take_while(|c| **c == '#').count();
        match at(n) {
            '/' if at(n + 1) == '/' => {
                while n < c.len() && at(n) != '\n' {
                    n += 1;
                }
            }
            '/' if at(n + 1) == '*' => {
                let mut depth = 0;
                while n < c.len() {
                    match (at(n), at(n + 1)) {
                        ('/', '*') => (depth, n) = (depth + 1, n + 2),
                        ('*', '/') => (depth, n) = (depth - 1, n + 2),
                        _ => n += 1,
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
            'b' | 'c' if at(n + 1) == '"' || (at(n + 1) == 'r' && matches!(at(n + 2), '"' | '#')) => n += 1,
            'r' if at(n + 1 + hashes) == '"' => {
                let end: String = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                n += hashes + 2;
                while n < c.len() && !c[n..].iter().take(hashes + 1).copied().eq(end.chars()) {
                    n += 1;
                }
                n += hashes + 1;
            }
            '"' => {
                let begin = n + 1;
                n += 1;
                while n < c.len() && at(n) != '"' {
                    n += if at(n) == '\\' { 2 } else { 1 };
                }
                let literal: String = c[begin.min(n)..n.min(c.len())].iter().collect();
                if ["crate::", "super::"].iter().any(|root| literal.starts_with(root)) {
                    found.extend(tokens(&literal));
                    found.push(Token::Mark('"'));
                }
                n += 1;
            }
            // A character, or else a lifetime.
            '\'' if at(n + 1) == '\\' => {
                n += 3;
                while n < c.len() && at(n) != '\'' {
                    n += 1;
                }
                n += 1;
            }
            '\'' if at(n + 2) == '\'' => n += 3,
            '\'' => {
                n += 1;
                while is_word(at(n)) {
                    n += 1;
                }
            }
            first if is_word(first) => {
                let begin = n;
                while is_word(at(n)) {
                    n += 1;
                }
                found.push(Token::Word(c[begin..n].iter().collect()));
            }
            ':' if at(n + 1) == ':' => {
                found.push(Token::Of);
                n += 2;
            }
            space if space.is_whitespace() => n += 1,
            mark => {
                found.push(Token::Mark(mark));
                n += 1;
            }
        }
    }
    found
}

/// What types and modules the language has of itself.
const PRIMITIVES: [&str; 17] = [
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16", "u32",
    "u64", "u128", "usize",
];

/// What attributes name.
const TOOLS: [&str; 2] = ["clippy", "rustfmt"];

struct Reader<'t> {
    tokens: &'t [Token],
    /// Of each path the module that it stands in, and whether it is imported.
    paths: Vec<(Vec<String>, Vec<String>, bool)>,
    /// What `use` gives names to.
    bound: BTreeSet<(String, Vec<String>)>,
    /// The modules that are declared here, each below its own.
    declared: BTreeSet<Vec<String>>,
}

impl Reader<'_> {
    fn word(&self, n: usize) -> Option<&str> {
        match self.tokens.get(n) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn is(&self, n: usize, mark: char) -> bool {
        self.tokens.get(n) == Some(&Token::Mark(mark))
    }

    fn read(&mut self, file: &[String]) {
        let (mut module, mut depth, mut n) = (file.to_vec(), 0_usize, 0);
        // How deep each inline module is.
        let mut inline = Vec::new();
        while n < self.tokens.len() {
            let is_field = n > 0 && (self.is(n - 1, '.') && !(n > 1 && self.is(n - 2, '.')));
            let is_later = n > 0 && self.tokens[n - 1] == Token::Of;
            match &self.tokens[n] {
                Token::Mark('{') => depth += 1,
                Token::Mark('}') => {
                    depth = depth.saturating_sub(1);
                    if inline.last() == Some(&depth) {
                        inline.pop();
                        module.pop();
                    }
                }
                Token::Word(word) if word == "mod" => {
                    if let Some(name) = self.word(n + 1).map(str::to_owned) {
                        let mut path = module.clone();
                        path.push(name);
                        if self.is(n + 2, '{') {
                            inline.push(depth);
                            module.clone_from(&path);
                            depth += 1;
                        }
                        self.declared.insert(path);
                        n += 2;
                    }
                }
                // Behind a `+` it says what a type captures.
                Token::Word(word) if word == "use" && !self.is(n + 1, '<') => {
                    n = self.tree(n + 1, &[], &module);
                }
                Token::Word(word) if !is_later && !is_field && self.tokens.get(n + 1) == Some(&Token::Of) => {
                    // A macro's variable.
                    let is_variable = n > 0 && self.is(n - 1, '$') && word != "crate";
                    let mut path = vec![word.clone()];
                    while let (Some(Token::Of), Some(next)) = (self.tokens.get(n + 1), self.word(n + 2)) {
                        path.push(next.to_owned());
                        n += 2;
                    }
                    // One word alone has its type's arguments behind it: `parse::<u32>`.
                    if path.len() > 1 && !is_variable {
                        self.paths.push((module.clone(), path, false));
                    }
                }
                _ => {}
            }
            n += 1;
        }
    }

    /// What is imported by a tree, or a branch of one. Returns where it ends.
    fn tree(&mut self, mut n: usize, stem: &[String], module: &[String]) -> usize {
        let mut path = stem.to_vec();
        loop {
            match self.tokens.get(n) {
                Some(Token::Of) => n += 1,
                Some(Token::Mark('*')) => {
                    path.push("*".into());
                    n += 1;
                }
                Some(Token::Mark('{')) => {
                    n += 1;
                    while n < self.tokens.len() && !self.is(n, '}') {
                        n = self.tree(n, &path, module);
                        n += usize::from(self.is(n, ','));
                    }
                    return n + 1;
                }
                Some(Token::Word(word)) if word == "as" => {
                    self.bound.extend(self.word(n + 1).map(|name| (name.to_owned(), path.clone())));
                    self.paths.push((module.to_vec(), path, true));
                    return n + 2;
                }
                Some(Token::Word(word)) => {
                    if word != "self" || stem.is_empty() {
                        path.push(word.clone());
                    }
                    n += 1;
                }
                _ => {
                    self.bound.extend(path.last().map(|name| (name.clone(), path.clone())));
                    self.paths.push((module.to_vec(), path, true));
                    return n;
                }
            }
        }
    }
}

/// What the file of this module names of its own crate and of others.
pub fn imports(text: &str, file: &[&str]) -> BTreeSet<Import> {
    let tokens = tokens(text);
    let file: Vec<String> = file.iter().map(|name| (*name).to_owned()).collect();
    let mut reader =
        Reader { tokens: &tokens, paths: Vec::new(), bound: BTreeSet::new(), declared: BTreeSet::new() };
    reader.read(&file);
    let Reader { paths, bound, declared, .. } = reader;
    let import = |(module, path, is_use): &(Vec<String>, Vec<String>, bool)| -> Option<Import> {
        let first = path.first()?.as_str();
        // A module of this one, or of one that this is in, whose names tests have by `use super::*`.
        let parent = (file.len()..=module.len()).rev().map(|end| &module[..end]).find(|above| {
            declared.contains(&above.iter().chain(path).take(above.len() + 1).cloned().collect::<Vec<_>>())
        });
        let above = path.iter().take_while(|name| *name == "super").count();
        let own = match first {
            "crate" => path[1..].to_vec(),
            "self" => module.iter().chain(&path[1..]).cloned().collect(),
            "super" => module
                .iter()
                .take(module.len().saturating_sub(above))
                .chain(&path[above..])
                .cloned()
                .collect(),
            _ if parent.is_some() => parent.into_iter().flatten().chain(path).cloned().collect(),
            // A type, or what was imported under this name.
            _ if first.starts_with(char::is_uppercase) => return None,
            _ if TOOLS.contains(&first) => return None,
            // What is imported from somewhere is looked at there.
            _ if bound.iter().any(|(name, path)| name == first && path[..] != [first]) => return None,
            _ if PRIMITIVES.contains(&first) && !is_use => return None,
            _ => return Some(Import::Crate(first.to_owned())),
        };
        Some(Import::Own(own))
    };
    paths.iter().filter_map(import).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let word = |import: &Import| match import {
            Import::Own(path) => format!("/{}", path.join("/")),
            Import::Crate(name) => name.clone(),
        };
        imports(text, &["rules", "pod"]).iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_path_is_read_wherever_it_is() {
        for (text, paths) in [
            ("use crate::error::Error;", "/error/Error"),
            ("use crate::Interrupts;", "/Interrupts"),
            (
                "pub use crate::{client::{Cluster, single::Address as At}, rules};",
                "/client/Cluster /client/single/Address /rules",
            ),
            ("let x = crate::clock::now();", "/clock/now"),
            ("use super::super::client::Cluster;", "/client/Cluster"),
            ("use super::{super::clock, node::Node};", "/clock /rules/node/Node"),
            ("use self::tests::x;", "/rules/pod/tests/x"),
            ("mod deep; mod tests { use super::*; deep::f() }", "/rules/pod/* /rules/pod/deep/f"),
            ("mod deep; use deep::Deep;", "/rules/pod/deep/Deep"),
            (
                "mod tests { use super::*; fn f() { super::super::node::f() } } use super::x;",
                "/rules/node/f /rules/pod/* /rules/x",
            ),
            ("use kube; kube::f()", "kube"),
            ("use crate::error::{self as library}; pub use library::Error;", "/error"),
            ("use ::kube::Client;", "kube"),
            ("#[derive(Debug, clap::ValueEnum)] enum E {}", "clap"),
            ("#[tokio::test] async fn f() {}", "tokio"),
            ("fn f() -> Vec<kube::Client> { tokio::select!{} }", "kube tokio"),
            ("0..kube::MOST", "kube"),
            ("#[serde(with = \"crate::client::time\")] x: u8", "/client/time"),
            ("macro_rules! m { ($t:ty) => { $crate::client::f(); $t::new() } }", "/client/f"),
            ("r\"a\\\"; tokio::f(); r#\"\"kube::f\"#; nix::f()", "nix tokio"),
            ("let c = '\"'; kube::f(); let d = '\\''; nix::f::<'static>()", "kube nix"),
        ] {
            assert_eq!(read(text), paths, "{text}");
        }
    }

    #[test]
    fn what_is_no_path_to_elsewhere_is_not_read() {
        for text in [
            "// use tokio::fs;\n/* kube::x /* nix::y */ tokio::z */ let text = \"clap::Parser\";",
            "u64::from(x); str::len; Self::new(); Vec::<u8>::new(); Error::Usage; x.parse::<u32>(); size_of::<T>()",
            "fn f<'a>(x: &'a str) -> impl Iterator + use<'a> {}",
            "othercrate; a::<b>()",
            "#[allow(clippy::too_many_lines)] fn f() {}",
        ] {
            assert_eq!(read(text), "", "{text}");
        }
        // It is read where it is imported.
        assert_eq!(
            read("use crate::words::leases as words; words::f(); leases::g()"),
            "/words/leases leases"
        );
    }
}
