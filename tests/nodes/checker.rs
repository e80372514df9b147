//! The checker of what pods wrote to a disk that they share.

use crate::harness::disk::{Line, at_once, overlaps, parse, side_by_side, writers};

crate::tests![moments_with_two_writers, pauses, lines, time_with_two_writers, histories_side_by_side];

/// Lines of one writer, from one time to another, in hundredths of a second.
fn writes(uid: &str, node: &str, from: u64, to: u64) -> Vec<Line> {
    let line = |time| Line { time, uid: uid.to_owned(), node: node.to_owned() };
    (from..=to).step_by(15).map(line).collect()
}

fn moments_with_two_writers() {
    let x = |from, to| writes("x", "a", from, to);
    let y = |from, to| writes("y", "b", from, to);
    for (case, lines, expected) in [
        ("nobody", vec![], &[][..]),
        ("one", x(0, 300), &[]),
        ("one after the other", [x(0, 300), y(900, 1200)].concat(), &[]),
        ("the next begins in the moment of the last line", [x(0, 300), y(300, 600)].concat(), &[]),
        ("a line is written a moment after its time was read", [x(0, 300), y(296, 596)].concat(), &[]),
        ("both for a second", [x(0, 300), y(200, 500)].concat(), &[(200, 300)]),
        ("order in the file does not matter", [y(200, 500), x(0, 300)].concat(), &[(200, 300)]),
        ("one during the other", [x(0, 600), y(300, 450)].concat(), &[(300, 450)]),
        ("a single line amid those of another", [x(0, 600), y(310, 310)].concat(), &[(310, 310)]),
        ("a single line before those of another", [y(0, 0), x(2, 600)].concat(), &[]),
        ("two at the same node", [x(0, 300), writes("y", "a", 150, 450)].concat(), &[(150, 300)]),
        ("one returns from a pause", [x(0, 300), y(900, 1800), x(1500, 1650)].concat(), &[(1500, 1650)]),
        ("a pause without another", [x(0, 300), x(1500, 1650)].concat(), &[]),
        (
            "three",
            [x(0, 300), y(150, 450), writes("z", "a", 225, 600)].concat(),
            &[(150, 300), (225, 300), (225, 450)],
        ),
        ("twice", [x(0, 900), y(150, 300), y(600, 750)].concat(), &[(150, 300), (600, 750)]),
    ] {
        let found: Vec<_> = overlaps(&lines).iter().map(|found| (found.from, found.to)).collect();
        assert_eq!(found, expected, "{case}");
    }
    let found = &overlaps(&[x(0, 300), y(195, 495)].concat())[0];
    assert_eq!(found.to_string(), "two writers for 1.05s, from 1.95 to 3.00: pod x on a and pod y on b");
}

fn pauses() {
    let lines = [writes("x", "a", 0, 300), writes("x", "a", 450, 600), writes("x", "a", 751, 900)].concat();
    let stretches: Vec<_> = writers(&lines).iter().map(|it| (it.from, it.to)).collect();
    assert_eq!(stretches, [(0, 600), (751, 886)]);
}

fn lines() {
    let line = |time, uid: &str, node: &str| Line { time, uid: uid.to_owned(), node: node.to_owned() };
    let text = "12.34 x a\n1234.05 y b\n";
    let whole = [line(1234, "x", "a"), line(123_405, "y", "b")];
    assert_eq!(parse(text).unwrap(), whole);
    assert_eq!(parse(&format!("{text}1235")).unwrap(), whole, "a line that is not whole");
    assert_eq!(parse("1.00 x a").unwrap(), []);
    assert_eq!(parse("").unwrap(), []);
    for wrong in
        ["1.0 x a\n", "1 x a\n", "1.00 x\n", "1.00 x a b\n", "\n", "1.00  a\n", "1.00 x a\n\n1.15 x a\n"]
    {
        parse(wrong).unwrap_err();
    }
}

fn time_with_two_writers() {
    let [x, y, z] = ["x", "y", "z"].map(|uid| move |from, to| writes(uid, "a", from, to));
    for (case, lines, expected) in [
        ("nobody", vec![], None),
        ("one after the other", [x(0, 300), y(900, 1200)].concat(), None),
        ("both for a second", [x(0, 300), y(195, 495)].concat(), Some(1.05)),
        ("a moment", [x(0, 600), y(310, 310)].concat(), Some(0.0)),
        ("twice", [x(0, 900), y(150, 300), y(600, 750)].concat(), Some(3.0)),
        ("three count once", [x(0, 300), y(150, 450), z(225, 600)].concat(), Some(3.0)),
        ("a short one during a long one", [x(0, 900), y(150, 900), z(300, 450)].concat(), Some(7.5)),
    ] {
        assert_eq!(at_once(&lines), expected, "{case}");
    }
}

fn histories_side_by_side() {
    let uid = |letter: &str| format!("{letter}1234567-89ab");
    let x = |from, to| writes(&uid("x"), "node-1", from, to);
    let y = |from, to| writes(&uid("y"), "node-2", from, to);
    let file = |name: &str, lines: Vec<Line>| (name.to_owned(), lines);
    let doubled = file("a-0", [x(5000, 5585), y(5300, 6200)].concat());
    let followed = file("b-0", [x(5060, 5510), y(5840, 6140)].concat());
    let expected = "\
SECONDS   a-0                                       b-0
0-2       x1234567 on node-1                        x1234567 on node-1
3-5       x1234567 on node-1 + y1234567 on node-2   x1234567 on node-1
6-7       y1234567 on node-2                        -
8-11      y1234567 on node-2                        y1234567 on node-2
12        y1234567 on node-2                        -
";
    assert_eq!(side_by_side(&[doubled, followed]), expected);
    let within_a_second = file("c", [x(0, 120), y(180, 285)].concat());
    assert_eq!(
        side_by_side(&[within_a_second]),
        "SECONDS   c\n0         x1234567 on node-1\n1         x1234567 on node-1, then y1234567 on node-2\n\
         2         y1234567 on node-2\n"
    );
    assert_eq!(side_by_side(&[file("nothing", vec![])]), "");
}
