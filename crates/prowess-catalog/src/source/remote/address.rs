//! Which addresses are connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Which addresses are connected to.
///
/// A server on the internet must not be able to make us ask a machine in our own network: not by a
/// redirect, not by the address that it gives its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// Public addresses.
    #[default]
    Public,
    /// Public addresses, and these.
    PublicAnd(Vec<IpAddr>),
    /// All addresses. For tests and development.
    Any,
}

impl Reach {
    /// Whether this address is connected to.
    ///
    /// ```
    /// use prowess_catalog::Reach;
    ///
    /// assert!(Reach::Public.includes("93.184.216.34".parse()?));
    /// assert!(!Reach::Public.includes("127.0.0.1".parse()?));
    /// assert!(!Reach::Public.includes("::ffff:10.0.0.1".parse()?));
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    pub fn includes(&self, address: IpAddr) -> bool {
        let plain = address.to_canonical();
        match self {
            Self::Any => true,
            Self::Public => is_public(plain),
            Self::PublicAnd(others) => {
                is_public(plain) || others.iter().any(|other| other.to_canonical() == plain)
            }
        }
    }
}

/// The text says neither which addresses nor that all are meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is neither `allow` nor a list of addresses between commas")]
pub struct InvalidReach(String);

/// `allow`, or addresses between commas.
impl FromStr for Reach {
    type Err = InvalidReach;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim() == "allow" {
            return Ok(Self::Any);
        }
        let addresses = text.split(',').map(|part| part.trim().parse::<IpAddr>());
        let addresses: Result<Vec<IpAddr>, _> = addresses.collect();
        addresses.map(Self::PublicAnd).map_err(|_| InvalidReach(text.to_owned()))
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        // This network, private, shared by carriers, loopback, link-local.
        (0 | 10 | 127, ..) | (100, 64..=127, _) | (169, 254, _) | (172, 16..=31, _) | (192, 168, _)
        // Protocol assignments, documentation, relays, benchmarks.
        | (192, 0, 0 | 2) | (192, 31, 196) | (192, 52, 193) | (192, 88, 99) | (192, 175, 48)
        | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113)
        // Multicast, reserved, broadcast.
        | (224..=255, ..)
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    if let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = parts {
        // Translated to the address of version 4 that it holds.
        let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    match parts {
        // Protocol assignments, tunnels to any address of version 4 among them; documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..]
        | [0x2002, ..]
        | [0x3fff, 0..=0xfff, ..]
        | [0x2620, 0x4f, 0x8000, ..] => false,
        // Everything else that was ever given to anybody. Not: loopback, local, multicast.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}
