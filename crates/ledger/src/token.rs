//! What leads a program to its class: the value of `DISCNICE` in its environment.
//!
//! `block:nonce:index:generation:/directory`, all but the last in hexadecimal. The third and fourth name the
//! member that a process is when it executes another program, and stand there together or not at all. The directory is
//! that of blocks that are files, and stands there only where one is.

use discnice_sys::block::BlockId;

use crate::member::MemberId;

/// The variable, as it begins an entry of an environment.
pub const VARIABLE: &[u8] = b"DISCNICE=";
/// Longest text of the numbers, with their colons.
pub const NUMBERS_MAX: usize = 4 * 16 + 3;

/// Names a class, and maybe the member of it that the process already is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Block of the class.
    pub block: BlockId,
    /// The class's nonce.
    pub nonce: u64,
    /// The member.
    pub member: Option<MemberId>,
    /// The directory of blocks that are files, where one is needed.
    pub directory: Option<&'a [u8]>,
}

impl<'a> Token<'a> {
    /// Parses the variable's value; `None` for what is none.
    #[must_use]
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let path = text.windows(2).position(|two| two == b":/");
        let (numbers, path) = text.split_at_checked(path.unwrap_or(text.len()))?;
        let mut numbers = numbers.split(|byte| *byte == b':').map(number);
        let (block, nonce) = (BlockId::from_claim(numbers.next()??), numbers.next()??);
        let member = match (numbers.next(), numbers.next(), numbers.next()) {
            (None, ..) => None,
            (Some(index), Some(generation), None) => Some(MemberId {
                index: u32::try_from(index?).ok()?,
                generation: u32::try_from(generation?).ok()?,
            }),
            _ => return None,
        };
        Some(Self { block, nonce, member, directory: path.get(1..) })
    }

    /// Hands the text over in parts.
    pub fn write(&self, mut put: impl FnMut(&[u8])) {
        hexadecimal(self.block.get(), &mut put);
        put(b":");
        hexadecimal(self.nonce, &mut put);
        if let Some(id) = self.member {
            put(b":");
            hexadecimal(id.index.into(), &mut put);
            put(b":");
            hexadecimal(id.generation.into(), &mut put);
        }
        if let Some(directory) = self.directory {
            put(b":");
            put(directory);
        }
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        Some(number << 4 | u64::from((*digit as char).to_digit(16)?))
    })
}

/// Hands a number over digit by digit, without leading zeroes.
pub fn hexadecimal(number: u64, put: &mut impl FnMut(&[u8])) {
    let digits = (64 - number.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        let value = (number >> (4 * digit) & 15) as u8;
        put(&[if value < 10 { b'0' + value } else { b'a' + value - 10 }]);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(token: &Token<'_>) -> Vec<u8> {
        let mut text = Vec::new();
        token.write(|part| text.extend_from_slice(part));
        text
    }

    #[test]
    fn what_no_one_wrote_is_refused() {
        for text in
            ["", ":", "1", "1:", "1:2:3", "1:2:3:4:5", "g:1", "1:2:100000000:1", "0x1:2", ":/x"]
        {
            assert_eq!(Token::parse(text.as_bytes()), None, "{text}");
        }
        let short = Token::parse(b"1f:A").unwrap();
        assert_eq!((short.block, short.nonce), (BlockId::of_segment(31), 10));
        assert_eq!(Token::parse(b"1:2:/a:/b").unwrap().directory, Some(&b"/a:/b"[..]));
        assert_eq!(Token::parse(&[b"1:", &[b'0'; 17][..]].concat()), None);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            block: u64, nonce: u64, member: Option<(u32, u32)>, path in proptest::option::of("/[a-z:/]{0,20}"),
        ) {
            let token = Token {
                block: BlockId::from_claim(block),
                nonce,
                member: member.map(|(index, generation)| MemberId { index, generation }),
                directory: path.as_deref().map(str::as_bytes),
            };
            let text = text(&token);
            prop_assert_eq!(Token::parse(&text), Some(token));
            let numbers = text.len() - token.directory.map_or(0, |path| path.len() + 1);
            prop_assert!(numbers <= NUMBERS_MAX);
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            if let Some(token) = Token::parse(&bytes) {
                let text = text(&token);
                prop_assert_eq!(Token::parse(&text), Some(token));
            }
        }
    }
}
