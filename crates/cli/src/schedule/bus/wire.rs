//! Messages as the D-Bus specification has them, in little-endian order.

/// A longer message answers no question of ours.
const LONGEST: usize = 1 << 16;
/// What of a message comes before the fields of its header.
const FIXED: usize = 16;
/// Marks of the wire format.
const LITTLE: u8 = b'l';
const CALL: u8 = 1;
const REPLY: u8 = 2;
const SIGNAL: u8 = 4;
const NO_AUTO_START: u8 = 2;
/// Fields of a message's header.
const PATH: u8 = 1;
const INTERFACE: u8 = 2;
const MEMBER: u8 = 3;
const REPLY_SERIAL: u8 = 5;
const DESTINATION: u8 = 6;
const SIGNATURE: u8 = 8;

/// A method or property of a service's object.
#[derive(Debug, Clone, Copy)]
pub struct BusMember<'a> {
    /// The service.
    pub service: &'a str,
    /// The object.
    pub object: &'a str,
    /// The interface of that.
    pub interface: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// An argument of a call.
#[derive(Debug, Clone, Copy)]
pub enum Argument<'a> {
    Text(&'a str),
    Number(u32),
    Signed(i32),
    Texts(&'a [&'a str]),
    /// An empty dictionary.
    Nothing,
}

impl Argument<'_> {
    const fn signature(self) -> &'static str {
        match self {
            Self::Text(_) => "s",
            Self::Number(_) => "u",
            Self::Signed(_) => "i",
            Self::Texts(_) => "as",
            Self::Nothing => "a{sv}",
        }
    }

    fn push(self, body: &mut Vec<u8>) {
        pad(body, 4);
        match self {
            Self::Text(text) => push_text(body, text),
            Self::Number(number) => body.extend(number.to_le_bytes()),
            Self::Signed(number) => body.extend(number.to_le_bytes()),
            Self::Texts(texts) => {
                let mut all = Vec::new();
                texts.iter().for_each(|text| push_text(&mut all, text));
                body.extend((all.len() as u32).to_le_bytes());
                body.extend(all);
            }
            Self::Nothing => {
                body.extend(0u32.to_le_bytes());
                // Where its first entry would begin.
                pad(body, 8);
            }
        }
    }
}

/// A call; the bus starts the service for it if it `starts`.
pub fn call(serial: u32, of: &BusMember<'_>, arguments: &[Argument<'_>], starts: bool) -> Vec<u8> {
    let mut body = Vec::new();
    arguments.iter().for_each(|argument| argument.push(&mut body));
    let mut fields = Vec::new();
    let texts = [
        (PATH, b'o', of.object),
        (INTERFACE, b's', of.interface),
        (MEMBER, b's', of.name),
        (DESTINATION, b's', of.service),
    ];
    for (field, kind, text) in texts {
        pad(&mut fields, 8);
        fields.extend([field, 1, kind, 0]);
        push_text(&mut fields, text);
    }
    let signature: String = arguments.iter().map(|argument| argument.signature()).collect();
    if !signature.is_empty() {
        pad(&mut fields, 8);
        fields.extend([SIGNATURE, 1, b'g', 0, signature.len() as u8]);
        fields.extend(signature.as_bytes());
        fields.push(0);
    }
    let mut message = vec![LITTLE, CALL, if starts { 0 } else { NO_AUTO_START }, 1];
    message.extend((body.len() as u32).to_le_bytes());
    message.extend(serial.to_le_bytes());
    message.extend((fields.len() as u32).to_le_bytes());
    message.extend(fields);
    pad(&mut message, 8);
    message.extend(body);
    message
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    pad(bytes, 4);
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.push(0);
}

fn pad(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

/// Bytes that are no message.
#[derive(Debug, PartialEq, Eq)]
pub struct Garbage;

/// A message that was received.
#[derive(Debug)]
pub struct Message {
    bytes: Vec<u8>,
    /// Where the fields of the header end, which begin at byte 16.
    fields: usize,
    /// Where the body begins.
    body: usize,
}

impl Message {
    /// Takes the first message out of what was received; `None` if not all of it is there.
    ///
    /// # Errors
    /// That is no message.
    pub fn take(received: &mut Vec<u8>) -> Result<Option<Self>, Garbage> {
        let word = |at: usize| received.get(at..at + 4).and_then(|four| four.try_into().ok());
        let (Some(body), Some(fields)) = (word(4), word(12)) else { return Ok(None) };
        let (body, fields) =
            (u32::from_le_bytes(body) as usize, u32::from_le_bytes(fields) as usize);
        let head = fields.saturating_add(FIXED).next_multiple_of(8);
        if received.first() != Some(&LITTLE) || head > LONGEST || body > LONGEST {
            return Err(Garbage);
        }
        if received.len() < head + body {
            return Ok(None);
        }
        let rest = received.split_off(head + body);
        let bytes = std::mem::replace(received, rest);
        Ok(Some(Self { bytes, fields: FIXED + fields, body: head }))
    }

    fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    /// Where the value of this field of the header begins.
    fn field(&self, wanted: u8) -> Option<usize> {
        let mut at = FIXED;
        while at < self.fields {
            if *self.bytes.get(at)? == wanted {
                return Some(at + 4);
            }
            at = self.next_field(at)?;
        }
        None
    }

    /// Where the field behind the one at this place begins: all that a bus sends have one of four types.
    fn next_field(&self, at: usize) -> Option<usize> {
        let end = match self.bytes.get(at + 2)? {
            b'u' => at + 8,
            b's' | b'o' => (at + 8).checked_add(self.word(at + 4)? as usize)?.checked_add(1)?,
            b'g' => at + 5 + usize::from(*self.bytes.get(at + 4)?) + 1,
            _ => return None,
        };
        Some(end.next_multiple_of(8))
    }

    /// The text at this place.
    fn text(&self, at: usize) -> Option<&str> {
        let begin = at.checked_add(4)?;
        let end = begin.checked_add(self.word(at)? as usize)?;
        std::str::from_utf8(self.bytes.get(begin..end)?).ok()
    }

    /// Whether it is the answer to the call of this number, a good one or an error.
    pub fn answers(&self, serial: u32) -> bool {
        self.field(REPLY_SERIAL).and_then(|at| self.word(at)) == Some(serial)
    }

    /// What it answers, with this signature: the place where that begins.
    fn answer(&self, signature: &[u8]) -> Option<usize> {
        let given = self.field(SIGNATURE).and_then(|at| {
            let length = usize::from(*self.bytes.get(at)?);
            self.bytes.get(at + 1..at + 1 + length)
        });
        (*self.bytes.get(1)? == REPLY && given == Some(signature)).then_some(self.body)
    }

    /// The number that it answers.
    pub fn number(&self) -> Option<u32> {
        self.word(self.answer(b"u")?)
    }

    /// The number or truth that it answers in a variant.
    pub fn variant(&self) -> Option<u64> {
        let at = self.answer(b"v")?;
        match self.bytes.get(at..at + 3)? {
            [1, b'b' | b'u', 0] => self.word(at + 4).map(u64::from),
            [1, b't', 0] => {
                let eight = self.bytes.get(at + 8..at + 16)?;
                Some(u64::from_le_bytes(eight.try_into().ok()?))
            }
            _ => None,
        }
    }

    /// The number that a signal of this name begins with, and the text behind that, if there is one.
    pub fn signal(&self, name: &str) -> Option<(u32, Option<&str>)> {
        let is_it = *self.bytes.get(1)? == SIGNAL
            && self.field(MEMBER).and_then(|at| self.text(at)) == Some(name);
        if !is_it {
            return None;
        }
        Some((self.word(self.body)?, self.text(self.body + 4)))
    }
}
