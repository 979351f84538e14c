//! Renders a conversation by a template to ids and a mask.
//!
//! It renders the plain templates of `bytepair.chat`, those without tools, as the Python package
//! does; a test compares both. A browser has no Python.

use std::ops::Range;

use bytepair::bulk::conversations::Segment;
use bytepair::decode::decoded_length;
use serde_json::{Map, Value, json};

use crate::error::{ViewResult, broken, not_json, wrong};
use crate::explored::Explored;
use crate::question::{Question, check_length};

/// The largest number of tokens of a conversation that is shown. The answer has about 1,600 bytes of
/// memory for each.
pub(crate) const MAX_CHAT_TOKENS: usize = 1 << 16;

/// The largest number of messages: each looks for its special tokens among all of the tokenizer.
const MAX_MESSAGES: usize = 1 << 12;

/// A template whose pieces are known; special tokens are resolved for each tokenizer.
#[derive(Debug)]
pub(crate) struct ChatTemplate {
    pub(crate) name: String,
    begin: Vec<FramePiece>,
    roles: Vec<ChatRole>,
    /// The order in which roles must alternate; empty for any order.
    alternate: Vec<String>,
    /// What stands between a first system message and the next message, if it is merged into that.
    merge_system: Option<String>,
    /// Whether adjacent texts are encoded as one.
    join: bool,
    /// Whether white space around the content of messages is removed.
    strip: bool,
}

/// A special token, or fixed text.
#[derive(Debug)]
enum FramePiece {
    Special { name: String, trained: bool, optional: bool },
    Text(String),
}

/// What stands around the messages of a role.
#[derive(Debug)]
struct ChatRole {
    name: String,
    frame: Frame,
    /// The kinds of parts that the content may be a list of.
    parts: Vec<(String, Frame)>,
    /// What stands around each of consecutive messages, which then share one turn.
    each: Option<Frame>,
}

/// Pieces before and after a text, and whether the model is trained on the text.
#[derive(Debug)]
struct Frame {
    open: Vec<FramePiece>,
    close: Vec<FramePiece>,
    trained: bool,
}

/// Segments of a conversation, each with its flag of the mask.
type Segments<'c> = Vec<(Segment<'c>, bool)>;

impl ChatTemplate {
    /// Read a template of the material: the fields of `bytepair.chat.Template`.
    pub(crate) fn new(json: &Value) -> ViewResult<Self> {
        let alternate = json["alternate"].as_array().into_iter().flatten();
        let role = |(name, role): (&String, &Value)| ChatRole::new(name, role);
        let roles = json["roles"].as_object().ok_or_else(|| wrong("a template has no roles"))?;
        Ok(Self {
            name: string(&json["name"])?,
            begin: pieces(&json["begin"])?,
            roles: roles.iter().map(role).collect::<ViewResult<_>>()?,
            alternate: alternate.map(string).collect::<ViewResult<_>>()?,
            merge_system: json["merge_system"].as_str().map(str::to_owned),
            join: json["join"] == true,
            strip: json["strip"] == true,
        })
    }

    /// The name of a special token that the template needs and the tokenizer lacks.
    pub(crate) fn missing(&self, one: &Explored) -> Option<&str> {
        let frames = self.roles.iter().flat_map(|role| {
            let parts = role.parts.iter().map(|(_, frame)| frame);
            parts.chain(&role.each).chain([&role.frame])
        });
        let pieces = frames.flat_map(|frame| frame.open.iter().chain(&frame.close));
        pieces.chain(&self.begin).find_map(|piece| match piece {
            FramePiece::Special { name, optional: false, .. }
                if one.core.vocabulary().special(name).is_none() =>
            {
                Some(name.as_str())
            }
            _ => None,
        })
    }

    fn role(&self, name: &str, index: usize) -> ViewResult<&ChatRole> {
        self.roles.iter().find(|role| role.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.roles.iter().map(|role| role.name.as_str()).collect();
            broken(format!(
                "message {index} is from '{name}', but the template '{}' has only the roles {}",
                self.name,
                names.join(", ")
            ))
        })
    }
}

impl ChatRole {
    fn new(name: &str, json: &Value) -> ViewResult<Self> {
        let parts = json["parts"].as_object().into_iter().flatten();
        let part = |(kind, part): (&String, &Value)| Ok((kind.clone(), Frame::new(part)?));
        let each = Some(&json["each"]).filter(|each| each.is_object());
        Ok(Self {
            name: name.to_owned(),
            frame: Frame::new(json)?,
            parts: parts.map(part).collect::<ViewResult<_>>()?,
            each: each.map(Frame::new).transpose()?,
        })
    }
}

impl Frame {
    fn new(json: &Value) -> ViewResult<Self> {
        let (open, close) = (pieces(&json["open"])?, pieces(&json["close"])?);
        Ok(Self { open, close, trained: json["trained"] == true })
    }
}

fn pieces(json: &Value) -> ViewResult<Vec<FramePiece>> {
    let piece = |one: &Value| {
        Ok(match one {
            Value::String(text) => FramePiece::Text(text.clone()),
            _ => FramePiece::Special {
                name: string(&one["name"])?,
                trained: one["trained"] == true,
                optional: one["optional"] == true,
            },
        })
    };
    json.as_array().into_iter().flatten().map(piece).collect()
}

fn string(json: &Value) -> ViewResult<String> {
    json.as_str().map(str::to_owned).ok_or_else(|| wrong(format!("{json} is no string")))
}

/// The tokens of the conversation in the body, each with whether the model is trained on it. Fails
/// if the conversation breaks a rule of the template.
pub(crate) fn chat(
    one: &Explored,
    template: &ChatTemplate,
    question: &Question<'_>,
) -> ViewResult<Value> {
    let conversation: Value = serde_json::from_str(question.text()?)
        .map_err(|error| not_json("the conversation", &error))?;
    let messages = conversation.get("messages").unwrap_or(&conversation).as_array();
    let messages = messages.filter(|messages| !messages.is_empty());
    let messages = messages.ok_or_else(|| {
        broken("a conversation is a list of messages that is not empty, or has one: \"messages\"")
    })?;
    if messages.len() > MAX_MESSAGES {
        let count = messages.len();
        return Err(broken(format!(
            "the conversation has {count} messages; the page shows at most {MAX_MESSAGES}"
        )));
    }
    let messages = merged(template, messages)?;
    let mut writer = ChatWriter { one, template, out: Vec::new() };
    writer.conversation(&messages)?;
    let (segments, trained): (Vec<_>, Vec<_>) = writer.out.into_iter().unzip();
    let all: [Range<usize>; 1] = std::array::from_fn(|_| 0..segments.len());
    let rendered = one.core.render(&all, &segments, &trained, template.join, 1)?;
    masked(one, &rendered.ids, &rendered.mask)
}

/// The tokens of a conversation that the caller has rendered: the body is a list of ids and one of
/// flags. Fails if it is not.
pub(crate) fn tokens(one: &Explored, question: &Question<'_>) -> ViewResult<Value> {
    let (ids, mask): (Vec<u32>, Vec<u8>) = serde_json::from_str(question.text()?)
        .map_err(|error| not_json("what is rendered", &error))?;
    masked(one, &ids, &mask)
}

/// Ids, each with whether the model is trained on it. Fails if they are too many to be shown.
fn masked(one: &Explored, ids: &[u32], mask: &[u8]) -> ViewResult<Value> {
    if ids.len() > MAX_CHAT_TOKENS {
        return Err(broken(format!(
            "the conversation has {} tokens; the page shows at most {MAX_CHAT_TOKENS}",
            ids.len()
        )));
    }
    check_length(decoded_length(one.core.vocabulary(), ids)?)?;
    let token = |(&id, &trained): (&u32, &u8)| {
        let mut token = one.named(id);
        token["trained"] = json!(trained);
        token["special"] = json!(one.is_special(id));
        token
    };
    Ok(json!({ "tokens": ids.iter().zip(mask).map(token).collect::<Vec<_>>() }))
}

/// A message: its index in the conversation, its role and its content.
type ChatMessage = (usize, String, Value);

/// The messages, with a first system message merged into the next one if the template says so.
fn merged(template: &ChatTemplate, messages: &[Value]) -> ViewResult<Vec<ChatMessage>> {
    let read = |(index, message): (usize, &Value)| message_of(index, message);
    let mut messages: Vec<ChatMessage> =
        messages.iter().enumerate().map(read).collect::<ViewResult<_>>()?;
    let Some(between) = &template.merge_system else { return Ok(messages) };
    if messages[0].1 != "system" {
        return Ok(messages);
    }
    let first = template.alternate.first().map_or("user", String::as_str);
    if messages.get(1).is_none_or(|(_, role, _)| role != first) {
        let found = messages.get(1).map_or("missing".to_owned(), |m| format!("from '{}'", m.1));
        return Err(broken(format!(
            "message 0 is a system message, so message 1 must be from '{first}', but it is {found}"
        )));
    }
    let (_, _, system) = messages.remove(0);
    let text = |content: &Value, index: usize| match content {
        Value::String(text) => Ok(text.clone()),
        _ => Err(broken(format!(
            "the content of message {index} is a list; to merge a system message, it must be a \
             string"
        ))),
    };
    messages[0].2 = Value::String(text(&system, 0)? + between + &text(&messages[0].2, 1)?);
    Ok(messages)
}

fn message_of(index: usize, message: &Value) -> ViewResult<ChatMessage> {
    let role = message.get("role").and_then(Value::as_str).ok_or_else(|| {
        broken(format!("message {index} must be a mapping with a string under \"role\""))
    })?;
    let content = message.get("content").cloned().unwrap_or_default();
    let fields = message.as_object().into_iter().flat_map(Map::keys);
    if let Some(unused) = fields.into_iter().find(|f| *f != "role" && *f != "content") {
        return Err(broken(format!(
            "message {index} has the field {unused}, which this page does not use; remove it"
        )));
    }
    Ok((index, role.to_owned(), content))
}

/// Writes the messages of a conversation as segments.
struct ChatWriter<'c> {
    one: &'c Explored,
    template: &'c ChatTemplate,
    out: Segments<'c>,
}

impl<'c> ChatWriter<'c> {
    fn conversation(&mut self, messages: &'c [ChatMessage]) -> ViewResult<()> {
        self.pieces(&self.template.begin)?;
        let mut before: Option<&str> = None;
        for (place, (index, name, content)) in messages.iter().enumerate() {
            self.check_turn(*index, place, name)?;
            let role = self.template.role(name, *index)?;
            self.message(role, *index, content, before == Some(name))?;
            before = Some(name);
        }
        Ok(())
    }

    fn check_turn(&self, index: usize, place: usize, name: &str) -> ViewResult<()> {
        let turns = &self.template.alternate;
        if let Some(expected) = turns.get(place % turns.len().max(1))
            && expected != name
        {
            return Err(broken(format!(
                "message {index} is from '{name}' but must be from '{expected}': roles take turns, {}",
                turns.join(", ")
            )));
        }
        if name == "system" && place > 0 {
            let reason = format!("message {index} is a system message; only message 0 may be");
            return Err(broken(reason));
        }
        Ok(())
    }

    fn message(
        &mut self,
        role: &'c ChatRole,
        index: usize,
        content: &'c Value,
        goes_on: bool,
    ) -> ViewResult<()> {
        if role.each.is_some() && goes_on {
            self.out.truncate(self.out.len() - role.frame.close.len() - 1);
        } else {
            self.pieces(&role.frame.open)?;
        }
        if let Some(each) = &role.each {
            self.pieces(&each.open)?;
        }
        self.content(role, index, content)?;
        if let Some(each) = &role.each {
            self.pieces(&each.close)?;
        }
        self.pieces(&role.frame.close)?;
        self.out.push((Segment::End, false));
        Ok(())
    }

    fn content(&mut self, role: &'c ChatRole, index: usize, content: &'c Value) -> ViewResult<()> {
        let expected =
            if role.parts.is_empty() { "a string" } else { "a string or a list of parts" };
        match content {
            Value::String(text) => {
                let text = if self.template.strip { text.trim() } else { text };
                self.out.push((Segment::Text(text), role.frame.trained));
                Ok(())
            }
            Value::Array(parts) if !role.parts.is_empty() => {
                (0..).zip(parts).try_for_each(|(number, part)| self.part(role, index, number, part))
            }
            Value::Null => Err(broken(format!("message {index} has no content; pass {expected}"))),
            _ => Err(broken(format!("the content of message {index} must be {expected}"))),
        }
    }

    fn part(
        &mut self,
        role: &'c ChatRole,
        index: usize,
        n: usize,
        part: &'c Value,
    ) -> ViewResult<()> {
        let (Some(kind), Some(text)) = (part["type"].as_str(), part["text"].as_str()) else {
            return Err(broken(format!(
                "part {n} of message {index} must be a mapping with \"type\" and a string \"text\""
            )));
        };
        let Some((_, frame)) = role.parts.iter().find(|(name, _)| name == kind) else {
            let names: Vec<&str> = role.parts.iter().map(|(name, _)| name.as_str()).collect();
            return Err(broken(format!(
                "part {n} of message {index} has the type '{kind}'; it must be one of {}",
                names.join(", ")
            )));
        };
        self.pieces(&frame.open)?;
        self.out.push((Segment::Text(text), frame.trained));
        self.pieces(&frame.close)
    }

    fn pieces(&mut self, pieces: &'c [FramePiece]) -> ViewResult<()> {
        for piece in pieces {
            let item = match piece {
                FramePiece::Text(text) => (Segment::Text(text), false),
                FramePiece::Special { name, trained, optional } => {
                    match self.one.core.vocabulary().special(name) {
                        Some(id) => (Segment::Id(id), *trained),
                        None if *optional => (Segment::Text(name), *trained),
                        None => {
                            return Err(broken(format!(
                                "the template '{}' needs the special token '{name}', which this \
                                 tokenizer does not have",
                                self.template.name
                            )));
                        }
                    }
                }
            };
            self.out.push(item);
        }
        Ok(())
    }
}
