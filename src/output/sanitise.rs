//! Text that others wrote (holder identities, names, annotations, error messages) made harmless.
//!
//! A holder identity may be any string. Printed as it is, an escape sequence in it could recolour,
//! clear or retitle the terminal, and a bidirectional override could make one name look like
//! another. Such characters are shown by their number instead: the reader sees that they are there.

use std::borrow::Cow;

/// Characters that a terminal obeys, or that change how the text around them is seen.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{00ad}' // soft hyphen
            | '\u{061c}' | '\u{200e}' | '\u{200f}' // direction marks
            | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' // zero width
            | '\u{2028}' | '\u{2029}' // line and paragraph separators
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' // embeddings, overrides, isolates
            | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' // blank letters
            | '\u{fe00}'..='\u{fe0f}' // variation selectors
            | '\u{fff9}'..='\u{fffb}' // interlinear annotations
            | '\u{e0000}'..='\u{e0fff}' // tags and further selectors
        )
}

/// Whether a byte is a character by itself, and a harmless one.
pub fn is_plain(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

/// `text` on one line, with every hostile character shown as `\u{…}`.
pub fn line(text: &str) -> Cow<'_, str> {
    if text.bytes().all(is_plain) || !text.contains(is_hostile) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().fold(String::with_capacity(text.len() + 8), |mut clean, c| {
        if is_hostile(c) {
            clean.extend(c.escape_unicode());
        } else {
            clean.push(c);
        }
        clean
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in ["", "cp-1_58b10081", "höst", "節点", "a b", "emoji 🚀"] {
            assert!(matches!(line(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn hostile_characters_are_shown_by_number() {
        for (text, shown) in [
            ("\x1b[31mred", "\\u{1b}[31mred"),
            ("a\nb\r\tc", "a\\u{a}b\\u{d}\\u{9}c"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("\x7f\x08", "\\u{7f}\\u{8}"),
            ("user\u{202e}nimda", "user\\u{202e}nimda"),
            ("ad\u{200b}min", "ad\\u{200b}min"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(line(text), shown);
        }
    }

    proptest! {
        #[test]
        fn nothing_hostile_is_left(text in "\\PC*|[\\x00-\\x{9f}]*|[\\x{2000}-\\x{2070}]*") {
            prop_assert!(!line(&text).contains(is_hostile));
        }
    }
}
