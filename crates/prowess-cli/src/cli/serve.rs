//! What can be typed behind `prowess serve`.

use std::net::{IpAddr, Ipv4Addr};

use clap::Args;

use super::exec::ExecutorArgs;
use super::{CatalogArgs, DialectArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prowess serve                                    http://127.0.0.1:7171, with documentation at /docs
  prowess serve --port 0 --json | jq -r .url       any port that is free
  prowess keys create ops --role admin && prowess serve --host 0.0.0.0

Without keys, everybody on this machine may do everything; as soon as there is a key, everybody needs
one. An address that other machines reach needs a key first. Limits are in [server] of
$PROWESS_HOME/prowess.toml. SIGTERM and Ctrl-C end the server when what was begun is finished; a
second one ends it at once.")]
pub(crate) struct ServeArgs {
    /// The address to listen at. Without it, that of prowess.toml, or 127.0.0.1.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) host: Option<IpAddr>,

    /// The port; 0 is any that is free. Without it, that of prowess.toml, or 7171.
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    #[command(flatten)]
    pub(crate) executor: ExecutorArgs,

    #[command(flatten)]
    pub(crate) dialect: DialectArgs,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Print where it serves as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write an address of this machine, as in 127.0.0.1, ::1 or 0.0.0.0, or `localhost`")]
struct InvalidAddress;

fn address(text: &str) -> Result<IpAddr, InvalidAddress> {
    match text {
        "localhost" => Ok(Ipv4Addr::LOCALHOST.into()),
        _ => text.parse().map_err(|_| InvalidAddress),
    }
}
