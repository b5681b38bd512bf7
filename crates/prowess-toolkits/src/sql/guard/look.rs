//! What the parser does not know, in words that it knows. Only for the look: what is run stays as it
//! was written. Nothing here takes away or adds what could write.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::sql::dialect::SqlDialect;

/// The same statement for the parser, without whitespace.
pub(super) fn rewrite(dialect: SqlDialect, tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_meant = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let old: Vec<TokenWithSpan> = tokens.into_iter().filter(is_meant).collect();
    let mut new: Vec<TokenWithSpan> = Vec::with_capacity(old.len() + 3);
    let mut at = 0;
    while at < old.len() {
        let put = |token: Token| TokenWithSpan { token, span: old[at].span };
        let next = |by: usize| old.get(at + by).map_or(&Token::EOF, |token| &token.token);
        match (&old[at].token, dialect) {
            // `TABLE t` is `SELECT * FROM t`.
            (token, SqlDialect::Postgresql | SqlDialect::Mysql)
                if at == 0 && is(token, Keyword::TABLE) =>
            {
                new.push(put(Token::make_keyword("SELECT")));
                new.push(put(Token::Mul));
                new.push(put(Token::make_keyword("FROM")));
                at += 1;
            }
            // Words of their own for what the parser knows in two or three.
            (token, SqlDialect::Sqlite | SqlDialect::Postgresql)
                if is_named(token, "ISNULL") && *next(1) != Token::LParen =>
            {
                new.push(put(Token::make_keyword("IS")));
                new.push(put(Token::make_keyword("NULL")));
                at += 1;
            }
            (token, SqlDialect::Sqlite | SqlDialect::Postgresql)
                if is_named(token, "NOTNULL") && *next(1) != Token::LParen =>
            {
                new.push(put(Token::make_keyword("IS")));
                new.push(put(Token::make_keyword("NOT")));
                new.push(put(Token::make_keyword("NULL")));
                at += 1;
            }
            (token, SqlDialect::Sqlite)
                if is(token, Keyword::NOT)
                    && is(next(1), Keyword::NULL)
                    && new.last().is_some_and(|it| ends_operand(&it.token)) =>
            {
                new.push(put(Token::make_keyword("IS")));
                new.push(old[at].clone());
                at += 1;
            }
            // Every comparison is one.
            (token, SqlDialect::Sqlite) if is(token, Keyword::IS) => {
                let not = usize::from(is(next(1), Keyword::NOT));
                if is_after_is(next(1 + not)) {
                    new.push(old[at].clone());
                    at += 1;
                } else {
                    new.push(put(Token::Eq));
                    at += 1 + not;
                }
            }
            // Advice for the planner.
            (token, SqlDialect::Sqlite) if is(token, Keyword::AS) => {
                new.push(old[at].clone());
                let not = usize::from(is(next(1), Keyword::NOT));
                let is_advice =
                    is(next(1 + not), Keyword::MATERIALIZED) && *next(2 + not) == Token::LParen;
                at += if is_advice { 2 + not } else { 1 };
            }
            (token, SqlDialect::Sqlite)
                if is_named(token, "INDEXED")
                    && is(next(1), Keyword::BY)
                    && matches!(next(2), Token::Word(_)) =>
            {
                at += 3;
            }
            (token, SqlDialect::Sqlite)
                if is(token, Keyword::NOT)
                    && is_named(next(1), "INDEXED")
                    && *next(2) != Token::LParen
                    && new.last().is_some_and(|it| ends_operand(&it.token)) =>
            {
                at += 2;
            }
            (Token::ShiftLeft | Token::ShiftRight, SqlDialect::Sqlite) => {
                new.push(put(Token::Plus));
                at += 1;
            }
            (Token::ExclamationMark, SqlDialect::Mysql) => {
                new.push(put(Token::Minus));
                at += 1;
            }
            // A function, unless a unit comes after it.
            (token, SqlDialect::Mysql)
                if is(token, Keyword::INTERVAL) && is_call(&old[at + 1..]) =>
            {
                new.push(put(Token::make_word("greatest", None)));
                at += 1;
            }
            _ => {
                new.push(old[at].clone());
                at += 1;
            }
        }
    }
    new
}

fn is(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.keyword == keyword && word.quote_style.is_none())
}

fn is_named(token: &Token, name: &str) -> bool {
    matches!(token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name))
}

/// Whether a value or a table can end with this.
fn ends_operand(token: &Token) -> bool {
    let goes_on = [
        Keyword::ALL,
        Keyword::AND,
        Keyword::AS,
        Keyword::BETWEEN,
        Keyword::BY,
        Keyword::CASE,
        Keyword::DISTINCT,
        Keyword::ELSE,
        Keyword::ESCAPE,
        Keyword::FROM,
        Keyword::GLOB,
        Keyword::HAVING,
        Keyword::IN,
        Keyword::IS,
        Keyword::JOIN,
        Keyword::LIKE,
        Keyword::LIMIT,
        Keyword::MATCH,
        Keyword::NOT,
        Keyword::OFFSET,
        Keyword::ON,
        Keyword::OR,
        Keyword::REGEXP,
        Keyword::SELECT,
        Keyword::THEN,
        Keyword::VALUES,
        Keyword::WHEN,
        Keyword::WHERE,
    ];
    match token {
        Token::Word(word) => word.quote_style.is_some() || !goes_on.contains(&word.keyword),
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::HexStringLiteral(_)
        | Token::RParen => true,
        _ => false,
    }
}

/// What the parser knows after `IS` and `IS NOT`.
fn is_after_is(token: &Token) -> bool {
    [Keyword::NULL, Keyword::TRUE, Keyword::FALSE, Keyword::UNKNOWN, Keyword::DISTINCT]
        .iter()
        .any(|keyword| is(token, *keyword))
}

/// Whether brackets with more than one value come, which no unit follows.
fn is_call(rest: &[TokenWithSpan]) -> bool {
    let (mut depth, mut has_comma) = (0_usize, false);
    for (at, token) in rest.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::Comma if depth == 1 => has_comma = true,
            _ => {}
        }
        if depth == 0 {
            let is_unit = rest.get(at + 1).is_some_and(|it| matches!(it.token, Token::Word(_)));
            return at > 0 && has_comma && !is_unit;
        }
    }
    false
}
