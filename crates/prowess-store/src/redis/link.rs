//! The connection to a Redis server.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, PushInfo, PushKind,
    RedisError, ServerErrorKind,
};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::AbortHandle;

use super::names::Names;
use super::open::RedisSettings;
use super::script::Call;
pub(super) use crate::unavailable::Unavailable;

/// So many operations wait for the server at most.
const WAITING: usize = 4096;

impl From<RedisError> for Unavailable {
    fn from(error: RedisError) -> Self {
        Self(format!("Redis: {error}"))
    }
}

/// A future that this store returns.
pub(super) type Answer<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// A connection, and whether it is still one.
#[derive(Clone)]
struct Connected {
    connection: MultiplexedConnection,
    is_lost: Arc<AtomicBool>,
}

struct Shared {
    client: Client,
    names: Names,
    settings: RedisSettings,
    connected: Mutex<Option<Connected>>,
    waiting: Semaphore,
    /// Changes of the registry by this process, one after another: they do not disturb each other.
    writing: Mutex<()>,
    /// What is done beside all operations, as long as there may be any.
    beside: OnceLock<Beside>,
}

/// A task that ends with whoever needs it.
struct Beside(AbortHandle);

impl Drop for Beside {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A server. Cheap to clone.
///
/// All operations share one connection, which is made again when it was lost. What changes
/// something is sent once: if the connection is lost before the answer, nobody knows what came of
/// it, and that is what is said.
#[derive(Clone)]
pub(super) struct Link {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        formatter.debug_struct("Link").field("names", &self.shared.names).finish_non_exhaustive()
    }
}

impl Link {
    pub(super) fn new(client: Client, names: Names, settings: RedisSettings) -> Self {
        let shared = Shared {
            client,
            names,
            settings,
            connected: Mutex::new(None),
            waiting: Semaphore::new(WAITING),
            writing: Mutex::new(()),
            beside: OnceLock::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The same server by connections of its own.
    pub(super) fn apart(&self) -> Self {
        let Shared { client, names, settings, .. } = &*self.shared;
        Self::new(client.clone(), names.clone(), settings.clone())
    }

    /// Ends a task when the last clone of this link is dropped.
    pub(super) fn end_with(&self, task: AbortHandle) {
        let _ = self.shared.beside.set(Beside(task));
    }

    pub(super) fn names(&self) -> &Names {
        &self.shared.names
    }

    /// So long an operation may take, with everything it asks of the server.
    pub(super) fn answer_time(&self) -> Duration {
        self.shared.settings.answer_time
    }

    /// Held by whoever changes the registry.
    pub(super) fn writing(&self) -> &Mutex<()> {
        &self.shared.writing
    }

    /// Does something within the time for it, as one of a bounded number.
    pub(super) fn operate<'a, T, E>(
        &'a self,
        operation: impl Future<Output = Result<T, E>> + Send + 'a,
    ) -> Answer<'a, T, E>
    where
        E: From<Unavailable>,
    {
        Box::pin(async move {
            let Ok(_permit) = self.shared.waiting.try_acquire() else {
                let cause = format!("{WAITING} operations wait for Redis already; try again");
                return Err(Unavailable(cause).into());
            };
            match tokio::time::timeout(self.answer_time(), operation).await {
                Ok(result) => result,
                Err(_) => Err(self.late().into()),
            }
        })
    }

    /// What is said of an answer that did not come. The connection may be dead: the next operation
    /// makes another one.
    fn late(&self) -> Unavailable {
        if let Ok(mut connected) = self.shared.connected.try_lock() {
            *connected = None;
        }
        let time = self.answer_time();
        Unavailable(format!("Redis has not answered within {time:?}; try again"))
    }

    /// Asks something. If the connection is lost meanwhile, asks again on another one.
    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Unavailable> {
        match self.send_command(command).await {
            Err(error) if error.is_connection_dropped() => Ok(self.send_command(command).await?),
            answer => Ok(answer?),
        }
    }

    /// Asks several things in one go.
    pub(super) async fn ask_all<T: FromRedisValue>(
        &self,
        commands: &Pipeline,
    ) -> Result<T, Unavailable> {
        match self.send_all(commands).await {
            Err(error) if error.is_connection_dropped() => Ok(self.send_all(commands).await?),
            answer => Ok(answer?),
        }
    }

    /// Runs a script once.
    pub(super) async fn run<T: FromRedisValue>(&self, call: &Call) -> Result<T, Unavailable> {
        match self.send_command(&call.command).await {
            Err(error) if is_unknown_script(&error) => {
                self.load(&[call]).await?;
                Ok(self.send_command(&call.command).await?)
            }
            answer => Ok(answer?),
        }
    }

    /// Runs several scripts in one go, one after another. They must be such that may run twice.
    pub(super) async fn run_all<T: FromRedisValue>(
        &self,
        calls: &[&Call],
    ) -> Result<T, Unavailable> {
        let mut commands = Pipeline::new();
        for call in calls {
            commands.add_command(call.command.clone());
        }
        match self.send_all(&commands).await {
            Err(error) if is_unknown_script(&error) => {
                self.load(calls).await?;
                Ok(self.send_all(&commands).await?)
            }
            answer => Ok(answer?),
        }
    }

    async fn load(&self, calls: &[&Call]) -> Result<(), Unavailable> {
        let connected = self.connected().await?;
        for call in calls {
            call.script.load_async(&mut connected.connection.clone()).await?;
        }
        Ok(())
    }

    async fn send_command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        let mut connected = self.connected().await?;
        let answer = command.query_async(&mut connected.connection).await;
        connected.judged(answer)
    }

    async fn send_all<T: FromRedisValue>(&self, commands: &Pipeline) -> Result<T, RedisError> {
        let mut connected = self.connected().await?;
        let answer = commands.query_async(&mut connected.connection).await;
        connected.judged(answer)
    }

    /// The connection, or a new one.
    async fn connected(&self) -> Result<Connected, RedisError> {
        let mut connected = self.shared.connected.lock().await;
        if let Some(connected) = connected.as_ref().filter(|it| !it.is_lost()) {
            return Ok(connected.clone());
        }
        *connected = None;
        let new = self.connect().await?;
        *connected = Some(new.clone());
        Ok(new)
    }

    async fn connect(&self) -> Result<Connected, RedisError> {
        let is_lost = Arc::new(AtomicBool::new(false));
        let lost = Arc::clone(&is_lost);
        let connection = self
            .subscriber(move |push| {
                if push.kind == PushKind::Disconnection {
                    lost.store(true, Ordering::Relaxed);
                }
            })
            .await?;
        Ok(Connected { connection, is_lost })
    }

    /// A connection of its own that tells what the server says unasked.
    pub(super) async fn subscriber(
        &self,
        tell: impl Fn(PushInfo) + Send + Sync + 'static,
    ) -> Result<MultiplexedConnection, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.shared.settings.connect_time))
            .set_response_timeout(Some(self.answer_time()))
            .set_push_sender(move |push| {
                tell(push);
                Ok::<_, redis::aio::SendError>(())
            });
        self.shared.client.get_multiplexed_async_connection_with_config(&config).await
    }
}

impl Connected {
    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Takes note of an answer that says that there is no connection any more.
    fn judged<T>(&self, answer: Result<T, RedisError>) -> Result<T, RedisError> {
        if let Err(error) = &answer
            && (error.is_connection_dropped() || error.is_timeout() || is_elsewhere(error))
        {
            self.is_lost.store(true, Ordering::Relaxed);
        }
        answer
    }
}

fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Whether this server is none any more that can be written to: after a change of roles the address
/// may lead to another one.
fn is_elsewhere(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
    )
}
