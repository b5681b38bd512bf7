//! Unpacking, against `unzip` and `tar`; starting from the cache, against a plain folder; memory,
//! against the size of what is fetched.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use prowess_catalog::{
    ArchiveKind, Blocking, Catalog, DirectorySource, Location, Reach, RemoteCache, RemoteLimits,
    RemoteSource, unpack,
};

use crate::discovery::{project, prowess};
use crate::results::Row;

const SKILLS: usize = 1_000;
/// How often contenders take turns; whoever waits for the disk does so less often.
const ROUNDS: usize = 9;
const ROUNDS_ON_DISK: usize = 3;
const ROUNDS_OF_STARTS: usize = 101;

pub(crate) fn run() -> Result<Vec<Row>> {
    let skills = project(SKILLS)?.join(".claude/skills");
    // In memory, if there is such a place: the work is compared, not the disk and who else uses it.
    let in_memory = Path::new("/dev/shm");
    let work =
        if in_memory.is_dir() { tempfile::tempdir_in(in_memory)? } else { tempfile::tempdir()? };
    let mut rows = Vec::new();
    for (kind, name, pack, peer) in [
        (ArchiveKind::Zip, "skills.zip", ["zip", "-qr"], "unzip"),
        (ArchiveKind::TarGz, "skills.tar.gz", ["tar", "czf"], "tar"),
        (ArchiveKind::Tar, "skills.tar", ["tar", "cf"], "tar"),
    ] {
        let archive = work.path().join(name);
        let place = if work.path().starts_with(in_memory) { "memory" } else { "a disk" };
        let what = format!("{peer} to unpacking {SKILLS} skills from {name} into {place}, wall");
        let mut packed = Command::new(pack[0]);
        match packed.arg(pack[1]).arg(&archive).arg(".").current_dir(&skills).status() {
            Ok(status) => ensure!(status.success(), "{} failed", pack[0]),
            Err(error) => {
                rows.push(Row::not_measured(&what, "≥ 0.7×", &format!("{}: {error}", pack[0])));
                continue;
            }
        }
        rows.extend(unpacking(&what, kind, &archive, peer, work.path())?);
    }
    let archive = work.path().join("skills.zip");
    rows.extend(starting(&skills, &archive, work.path())?);
    rows.extend(memory(work.path())?);
    Ok(rows)
}

/// Something to time, in an empty folder.
type Contender<'a> = &'a dyn Fn(&Path) -> Result<()>;

/// The median wall seconds of work in an empty folder of its own, contenders taking turns.
fn medians<const N: usize>(
    rounds: usize,
    work: &Path,
    contenders: [Contender<'_>; N],
) -> Result<[f64; N]> {
    let mut samples: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for _ in 0..rounds {
        for (samples, contender) in samples.iter_mut().zip(&contenders) {
            let folder = tempfile::tempdir_in(work)?;
            let begin = Instant::now();
            contender(folder.path())?;
            samples.push(begin.elapsed().as_secs_f64());
        }
    }
    Ok(samples.map(|mut samples| {
        samples.sort_by(f64::total_cmp);
        samples[rounds / 2]
    }))
}

fn ms(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1e3)
}

fn unpacking(
    what: &str,
    kind: ArchiveKind,
    archive: &Path,
    peer: &str,
    work: &Path,
) -> Result<Vec<Row>> {
    let theirs = |folder: &Path| -> Result<()> {
        let mut command = Command::new(peer);
        match peer {
            "unzip" => command.arg("-q").arg(archive).arg("-d").arg(folder),
            _ => command.arg("xf").arg(archive).arg("-C").arg(folder),
        };
        ensure!(command.status()?.success(), "{peer} failed");
        Ok(())
    };
    let ours = |folder: &Path| -> Result<()> {
        let limits = RemoteLimits::default();
        let unpacked = unpack(&File::open(archive)?, kind, folder, &limits, &mut |_| {})?;
        ensure!(unpacked.files.len() == 5 * SKILLS, "{} files", unpacked.files.len());
        Ok(())
    };
    // Copied, verified, unpacked, on the disk, and pointed to.
    let whole = |folder: &Path| -> Result<()> {
        let source = remote(&archive.display().to_string(), folder)?;
        block_on(source.refresh())?;
        Ok(())
    };
    let [theirs, ours] = medians(ROUNDS, work, [&theirs, &ours])?;
    let [whole] = medians(ROUNDS_ON_DISK, work, [&whole])?;
    let detail = format!("{} to {}", ms(theirs), ms(ours));
    let bound = what.replace("unpacking", "fetching, syncing and installing");
    let whole_detail = format!("{} to {}", ms(theirs), ms(whole));
    Ok(vec![
        Row::at_least(what, theirs / ours, 0.7, &detail),
        Row::bound(&bound, theirs / whole, &whole_detail),
    ])
}

fn remote(location: &str, cache: &Path) -> Result<RemoteSource> {
    let source = RemoteSource::new(Location::parse(location)?, RemoteCache::new(cache));
    Ok(source.with_reach(Reach::Any).with_blocking(Blocking::Here))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap_or_else(|error| panic!("no runtime: {error}")).block_on(work)
}

/// Starting from the cache, against the same skills in a folder.
fn starting(skills: &Path, archive: &Path, work: &Path) -> Result<Vec<Row>> {
    // On the same disk.
    let plain = work.join("plain");
    let copied = Command::new("cp").arg("-r").arg(skills).arg(&plain).status()?;
    ensure!(copied.success(), "cp failed");
    let (skills, cache) = (plain.as_path(), work.join("cache"));
    let location = archive.display().to_string();
    // What is as young as this is looked at again.
    std::thread::sleep(std::time::Duration::from_millis(100));
    block_on(remote(&location, &cache)?.refresh())?;
    let found = |catalog: &Catalog| -> Result<()> {
        let snapshot = block_on(catalog.refresh());
        ensure!(snapshot.skills().len() == SKILLS, "{:?}", snapshot.diagnostics());
        Ok(())
    };
    let plain = |_: &Path| -> Result<()> {
        let source = DirectorySource::new(skills).with_blocking(Blocking::Here);
        found(&Catalog::builder().source(source).build())
    };
    let cached = |_: &Path| -> Result<()> {
        found(&Catalog::builder().source(remote(&location, &cache)?).build())
    };
    let list = |place: &Path| -> Result<()> {
        let output = Command::new(prowess()?)
            .args(["list", "--no-default-roots", "--source"])
            .arg(place)
            .env("PROWESS_CACHE_DIR", &cache)
            .output()?;
        let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
        ensure!(lines == SKILLS + 1, "prowess list printed {lines} lines");
        Ok(())
    };
    let [plain, cached, plain_list, cached_list] =
        medians(ROUNDS_OF_STARTS, work, [&plain, &cached, &|_| list(skills), &|_| list(archive)])?;
    let row = |what: &str, ours: f64, floor: f64| {
        let what = format!("{SKILLS} skills: {what}, wall");
        Row::at_most(&what, ours / floor, 1.2, &format!("{} to {}", ms(ours), ms(floor)))
    };
    Ok(vec![
        row("warm start from the cache to a plain folder", cached, plain),
        row("`prowess list` from the cache to a plain folder", cached_list, plain_list),
    ])
}

/// What fetching takes at its peak, for a small and for a large archive.
fn memory(work: &Path) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let small = incompressible(work, "small", 1 << 20)?;
    let large = incompressible(work, "large", 60 << 20)?;
    for (kind, pack) in [("zip", ["zip", "-qr"]), ("tar.gz", ["tar", "czf"])] {
        let what = format!("peak memory of fetching 60 MiB as {kind} to that of 1 MiB");
        let mut peaks = Vec::new();
        for folder in [&small, &large] {
            let archive = folder.with_extension(kind);
            let packed = Command::new(pack[0])
                .arg(pack[1])
                .arg(&archive)
                .arg(".")
                .current_dir(folder)
                .status()?;
            ensure!(packed.success(), "{} failed", pack[0]);
            let url = serve(archive)?;
            let cache = tempfile::tempdir_in(work)?;
            peaks.push(peak_of(&url, cache.path())?);
        }
        let detail = format!("{:.1} MB to {:.1} MB", peaks[1] / 1e6, peaks[0] / 1e6);
        rows.push(Row::at_most(&what, peaks[1] / peaks[0], 1.1, &detail));
    }
    Ok(rows)
}

/// A skill with so many bytes that cannot be compressed.
fn incompressible(work: &Path, name: &str, bytes: usize) -> Result<PathBuf> {
    let folder = work.join(name);
    fs::create_dir(&folder)?;
    fs::write(folder.join("SKILL.md"), format!("---\nname: {name}\ndescription: Large\n---\n"))?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    let content: Vec<u8> = words.take(bytes / 8).flatten().collect();
    fs::write(folder.join("data"), content)?;
    Ok(folder)
}

/// The peak of the memory that fetching this takes, as the kernel counts it, of everything that this
/// process has.
fn peak_of(url: &str, cache: &Path) -> Result<f64> {
    // From here on.
    fs::write("/proc/self/clear_refs", "5").context("the peak cannot be reset")?;
    block_on(remote(url, cache)?.refresh())?;
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("no VmHWM")?;
    Ok(line.split_whitespace().nth(1).context("no number")?.parse::<f64>()? * 1024.0)
}

/// Serves a file on loopback, a few times, from its disk.
fn serve(file: PathBuf) -> Result<String> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let name = file.file_name().context("no name")?.to_string_lossy().into_owned();
    let url = format!("http://{}/{name}", listener.local_addr()?);
    std::thread::spawn(move || -> Result<()> {
        for stream in listener.incoming().take(4) {
            let mut stream = stream?;
            let mut request = BufReader::new(stream.try_clone()?);
            let mut line = String::new();
            while request.read_line(&mut line)? > 2 {
                line.clear();
            }
            let mut file = File::open(&file)?;
            let length = file.metadata()?.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            )?;
            std::io::copy(&mut file, &mut stream)?;
        }
        Ok(())
    });
    Ok(url)
}
