//! The documentation as a whole: every relative link leads somewhere, every page can be reached, and the
//! front page stays one.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Folders that are made, or hold no documentation.
const PASSED_OVER: [&str; 4] = [".git", "target", "dist", "man"];

/// Every Markdown page below a folder, by its path from the root.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut pages = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(Path::new(ROOT).join(&folder)).unwrap().map(Result::unwrap) {
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                if !PASSED_OVER.iter().any(|name| *name == entry.file_name()) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(entry.path()).unwrap();
                pages.insert(path, text);
            }
        }
    }
    pages
}

/// The lines of a page that are not in a block of code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    page.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The targets of `[text](target)`.
fn links(page: &str) -> Vec<String> {
    // A link's text may go over a line.
    let text: String = prose(page).map(|line| without_code(line) + "\n").collect();
    let after = text.split("](").skip(1);
    after.filter_map(|rest| Some(rest.split_once(')')?.0.trim().to_owned())).collect()
}

/// The names by which GitHub knows the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in prose(page).filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().replace('`', "");
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let name: String = kept.flat_map(char::to_lowercase).collect::<String>().replace(' ', "-");
        let mut unique = name.clone();
        for count in 1.. {
            if anchors.insert(unique) {
                break;
            }
            unique = format!("{name}-{count}");
        }
    }
    anchors
}

fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// What a link of a page leads to, from the root: none where it leads out of the repository.
fn resolve(page: &Path, target: &str) -> Option<PathBuf> {
    let mut path = page.parent()?.to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir if !path.pop() => return None,
            Component::Normal(name) => path.push(name),
            Component::ParentDir | Component::CurDir => {}
            _ => return None,
        }
    }
    Some(path)
}

/// What is wrong with a link, if anything.
fn fault(pages: &BTreeMap<PathBuf, String>, page: &Path, link: &str) -> Option<String> {
    let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
    let path = if target.is_empty() { Some(page.to_owned()) } else { resolve(page, target) };
    let is_there = |path: &PathBuf| pages.contains_key(path) || Path::new(ROOT).join(path).exists();
    let Some(path) = path.filter(is_there) else {
        return Some(format!("{}: there is no {target}", page.display()));
    };
    if anchor.is_empty() || pages.get(&path).is_some_and(|text| anchors(text).contains(anchor)) {
        return None;
    }
    Some(format!("{}: {} has no heading #{anchor}", page.display(), path.display()))
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let pages = pages();
    let mut count = 0;
    let mut faults = Vec::new();
    for (page, text) in &pages {
        for link in links(text).into_iter().filter(|link| !is_elsewhere(link)) {
            count += 1;
            faults.extend(fault(&pages, page, &link));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(count > 40, "only {count} links were found");
}

#[test]
fn every_page_of_docs_can_be_reached_from_the_readme() {
    let pages = pages();
    let mut reached = BTreeSet::new();
    let mut next = vec![PathBuf::from("README.md")];
    while let Some(page) = next.pop() {
        if !reached.insert(page.clone()) {
            continue;
        }
        for link in pages.get(&page).map(|text| links(text)).unwrap_or_default() {
            let target = link.split('#').next().filter(|target| !target.is_empty() && !is_elsewhere(target));
            next.extend(target.and_then(|target| resolve(&page, target)));
        }
    }
    let files = fs::read_dir(Path::new(ROOT).join("docs")).unwrap();
    let names = files.map(|file| Path::new("docs").join(file.unwrap().file_name()));
    let lost: Vec<_> = names.filter(|file| !reached.contains(file)).collect();
    assert!(lost.is_empty(), "no page that can be reached from README.md links to {lost:?}");
}

#[test]
fn the_readme_is_a_front_page() {
    let lines = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap().lines().count();
    assert!(lines <= 200, "README.md has {lines} lines, and 200 at most: the rest belongs in docs");
}

#[test]
fn dependabot_looks_where_there_is_something() {
    let text = fs::read_to_string(Path::new(ROOT).join(".github/dependabot.yml")).unwrap();
    let words = text.split(|c: char| c.is_whitespace() || "[],".contains(c));
    let folders: BTreeSet<_> = words.filter_map(|word| word.strip_prefix('/')).collect();
    assert!(folders.len() > 4, "{folders:?}");
    for folder in folders {
        assert!(Path::new(ROOT).join(folder).is_dir(), ".github/dependabot.yml names {folder}");
    }
}

/// The names of the dependencies of a package: keys of `[dependencies]`, also for one kind of system.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut is_inside = false;
    let mut names = BTreeSet::new();
    for line in manifest.lines().filter(|line| !line.starts_with('#')) {
        if line.starts_with('[') {
            is_inside = line == "[dependencies]"
                || (line.starts_with("[target.") && line.ends_with(".dependencies]"));
        } else if let Some((name, _)) = line.split_once(['.', ' ', '=']).filter(|_| is_inside) {
            names.insert(name.to_owned());
        }
    }
    names
}

#[test]
fn the_page_of_dependencies_has_all_of_them() {
    let read = |path: &str| fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
    let page = read("docs/dependencies.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let listed: BTreeSet<String> = rows.flat_map(|names| names.split(", ")).map(str::to_owned).collect();
    let mut used = dependencies(&read("Cargo.toml"));
    used.extend(dependencies(&read("kube-leases/Cargo.toml")));
    used.remove("kube-leases");
    let headings = BTreeSet::from(["crate".to_owned()]);
    assert_eq!(listed.difference(&headings).cloned().collect::<BTreeSet<_>>(), used);
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let text = "# The `maint` command: a *word*\n## Again\n## Again\n\
        [a](b.md) [c\nd](e.md#f) `[g](h)` [i](https://j.k)\n```\n# no heading [l](m)\n```\n";
    assert_eq!(links(text), ["b.md", "e.md#f", "https://j.k"]);
    assert_eq!(
        anchors(text),
        BTreeSet::from(["the-maint-command-a-word", "again", "again-1"].map(String::from))
    );
    let page = Path::new("docs/page.md");
    let pages = BTreeMap::from([(page.to_owned(), text.to_owned())]);
    for (link, is_right) in [
        ("../Cargo.toml", true),
        ("#again-1", true),
        ("page.md", true),
        ("no-page.md", false),
        ("../Cargo.toml#again", false),
        ("#again-2", false),
        ("../../outside", false),
        ("/docs", false),
    ] {
        assert_eq!(fault(&pages, page, link).is_none(), is_right, "{link}");
    }
}
