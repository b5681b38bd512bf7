//! What can be typed to talk with a model.

use clap::Args;
use prowess_runtime::SessionKey;

use super::exec::ExecutorArgs;
use super::{CatalogArgs, DialectArgs};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  prowess chat --model anthropic:claude-sonnet-4-5              its key is in ANTHROPIC_API_KEY
  prowess chat --model ollama:qwen3                             a model of this machine
  prowess chat --model openai:qwen3 --base-url http://localhost:8000/v1
  prowess chat --continue                                       go on where you left
  prowess chat --prompt '/release-notes since 1.4' > NOTES.md   one turn, which begins with a skill
  git diff | prowess chat --prompt - --json | jq .event

In the conversation, /help shows what can be typed: /skills, /load, /tokens, /session, and /NAME for
a skill. Ctrl-C ends a turn and keeps the session; Ctrl-D leaves. Lines from a pipe are messages:
one turn each, until one fails.

Keys come from OPENAI_API_KEY, ANTHROPIC_API_KEY, and GEMINI_API_KEY or GOOGLE_API_KEY. What is not
typed comes from [chat] in $PROWESS_HOME/prowess.toml: model, base_url, system.

Exit codes: 0 answered, 1 a turn failed or was not finished, 2 usage or no model, 130 interrupted.")]
pub(crate) struct ChatArgs {
    /// The model: openai, anthropic, gemini or ollama, a colon, and its name there.
    #[arg(long, value_name = "PROVIDER:NAME")]
    pub(crate) model: Option<String>,

    /// Where the model is, if not at its provider's: `openai:` with whatever speaks like OpenAI.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,

    /// Say this, print the answer, and leave; `-` reads a message from standard input.
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) prompt: Option<String>,

    /// The session: a name, or app/user/session. Without it, a new one.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<SessionKey>,

    /// Go on with the conversation of yours that was used last.
    #[arg(short = 'c', long = "continue", visible_alias = "resume", conflicts_with = "session")]
    pub(crate) goes_on: bool,

    /// What the model is told first.
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,

    #[command(flatten)]
    pub(crate) executor: ExecutorArgs,

    #[command(flatten)]
    pub(crate) dialect: DialectArgs,

    #[command(flatten)]
    pub(crate) catalog: CatalogArgs,

    /// Print the events of the agent and of the engine, one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}
