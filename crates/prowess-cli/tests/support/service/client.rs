//! A plain HTTP/1.1 client: one connection, kept open, one request at a time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longer than anything is allowed to take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client with a connection of its own.
pub(crate) struct Client {
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
}

/// What was answered, to its last byte.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// A header, whatever the case of its name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    /// The body; null if it is no JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// For messages: the status and the beginning of the body.
    pub(crate) fn brief(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        format!("{} {}", self.status, text.chars().take(300).collect::<String>())
    }
}

/// An answer that does not end.
pub(crate) struct Stream(BufReader<TcpStream>);

impl Stream {
    /// Reads until a line is this one.
    pub(crate) fn until(&mut self, wanted: &str) -> io::Result<()> {
        while read_line(&mut self.0)? != wanted {}
        Ok(())
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, connection: None }
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask("GET", path, &[], None)
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> io::Result<Answer> {
        self.ask("POST", path, &[], Some(body))
    }

    /// Follows what is told there, on a connection of its own.
    pub(crate) fn follow(&self, path: &str) -> io::Result<Stream> {
        let mut stream = Stream(connect(self.address)?);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        stream.0.get_mut().write_all(request.as_bytes())?;
        let status = read_line(&mut stream.0)?;
        match status.split(' ').nth(1) {
            Some("200") => Ok(stream),
            _ => Err(invalid(&status)),
        }
    }

    /// Asks once. After an error the next request gets a new connection.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> io::Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(self.address)?,
        };
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            let body = body.to_string();
            let length = body.len();
            request.push_str("Content-Type: application/json\r\n");
            request.push_str(&format!("Content-Length: {length}\r\n\r\n{body}"));
        } else {
            request.push_str("\r\n");
        }
        connection.get_mut().write_all(request.as_bytes())?;
        let answer = read_answer(&mut connection)?;
        let closes = answer.header("connection").is_some_and(|it| it.eq_ignore_ascii_case("close"));
        if !closes {
            self.connection = Some(connection);
        }
        Ok(answer)
    }
}

fn connect(address: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(stream))
}

fn read_answer(from: &mut impl BufRead) -> io::Result<Answer> {
    let status = read_line(from)?;
    let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = code.ok_or_else(|| invalid(&status))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(from)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid(&line))?;
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut answer = Answer { status, headers, body: Vec::new() };
    if answer.header("transfer-encoding").is_some_and(|it| it.eq_ignore_ascii_case("chunked")) {
        loop {
            let line = read_line(from)?;
            let size = usize::from_str_radix(&line, 16).map_err(|_| invalid(&line))?;
            let begin = answer.body.len();
            answer.body.resize(begin + size, 0);
            from.read_exact(&mut answer.body[begin..])?;
            read_line(from)?;
            if size == 0 {
                return Ok(answer);
            }
        }
    }
    let length = answer.header("content-length").map_or(Ok(0), str::parse);
    let length = length.map_err(|_| invalid("the length of the body"))?;
    answer.body.resize(length, 0);
    from.read_exact(&mut answer.body)?;
    Ok(answer)
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.take(65_536).read_line(&mut line)?;
    let Some(text) = line.strip_suffix('\n') else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    Ok(text.trim_end_matches('\r').to_owned())
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("this is no answer: {what}"))
}
