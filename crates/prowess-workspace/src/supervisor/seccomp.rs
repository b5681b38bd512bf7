//! System calls that no command needs, and that have led out of sandboxes.
//!
//! Everything else is allowed. A call by the number of another ABI is a call too: those of 32-bit
//! programs end the process, and those of x32 are refused.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::order::Sandbox;
use crate::executor::{Network, Tier};

/// Never: other processes, kernels, mounts, namespaces, keys, clocks.
const NEVER: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const NEVER_HERE: &[i64] = &[libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_HERE: &[i64] = &[];

/// Memory and messages that all processes of a user share, where there is no namespace for them.
const SHARED: &[i64] = &[
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
];

/// What says how another process is run, and by which argument: not zero means another one.
const OTHERS: &[(i64, u8)] = &[
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_setpriority, 1),
];

/// What sets a mode, and by which argument.
const MODES: &[(i64, u8)] =
    &[(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (libc::SYS_fchmodat2, 2)];
#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[(i64, u8)] = &[(libc::SYS_chmod, 1)];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[(i64, u8)] = &[];

/// The bits by which a program runs as its owner.
const SET_ID: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];

/// What changes modes, owners and times of files by their paths. Landlock does not judge it.
const METADATA: &[i64] = &[
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchownat,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
];

/// What tells of files elsewhere what Landlock does not judge: who uses them, and what is noted
/// beside their content. Programs go on without it, as they do on file systems that lack it.
const UNSUPPORTED: &[i64] = &[
    libc::SYS_fanotify_mark,
    libc::SYS_getxattr,
    libc::SYS_inotify_add_watch,
    libc::SYS_lgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    SYS_GETXATTRAT,
    SYS_LISTXATTRAT,
];

const SYS_SETXATTRAT: i64 = 463;
const SYS_GETXATTRAT: i64 = 464;
const SYS_LISTXATTRAT: i64 = 465;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_FILE_SETATTR: i64 = 469;

#[cfg(target_arch = "x86_64")]
const METADATA_HERE: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_futimesat,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
];
#[cfg(not(target_arch = "x86_64"))]
const METADATA_HERE: &[i64] = &[];

/// The flags of `clone` that make namespaces.
const NAMESPACES: i32 = libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS;

/// From this number on they are those of the x32 ABI, or none; elsewhere there are none.
const X32: u32 = 0x4000_0000;

/// A filter cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the filter of system calls cannot be made: {0}")]
pub(crate) struct NoFilter(String);

/// The filters: what is refused by its number, what by its arguments, and what is not done though it
/// does not fail.
pub(crate) fn filters(sandbox: Sandbox) -> Result<[BpfProgram; 3], NoFilter> {
    let mut denied: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    // A program of the user that anybody could run would outlive the sandbox.
    for (call, argument) in MODES.iter().chain(MODES_HERE) {
        for bit in SET_ID {
            let op = SeccompCmpOp::MaskedEq(bit);
            let is_set = condition(*argument, SeccompCmpArgLen::Dword, op, bit)?;
            denied.entry(*call).or_default().push(rule(vec![is_set])?);
        }
    }
    let mut always: Vec<i64> = Vec::new();
    // Whoever watches over the command is among the processes that it sees.
    if matches!(sandbox.tier, Tier::T1 | Tier::T3) {
        for (call, argument) in OTHERS {
            let op = SeccompCmpOp::Ne;
            let is_other = condition(*argument, SeccompCmpArgLen::Dword, op, 0)?;
            denied.entry(*call).or_default().push(rule(vec![is_other])?);
        }
        // All processes of a user, whoever that is.
        for (call, user) in
            [(libc::SYS_setpriority, PRIO_USER), (libc::SYS_ioprio_set, IOPRIO_USER)]
        {
            let is_all = condition(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, user)?;
            denied.entry(call).or_default().push(rule(vec![is_all])?);
        }
    }
    if sandbox.tier == Tier::T1 {
        always.extend_from_slice(SHARED);
        always.extend_from_slice(METADATA);
        always.extend_from_slice(METADATA_HERE);
        // Without a path it is about an open file, and Landlock has judged the opening.
        let has_path = condition(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
        denied.insert(libc::SYS_utimensat, vec![rule(vec![has_path])?]);
    }
    always.extend(NEVER.iter().chain(NEVER_HERE));
    let flags = u64::from(NAMESPACES.cast_unsigned());
    let mut clones = Vec::new();
    for bit in (0..32).map(|bit| 1u64 << bit).filter(|bit| flags & bit != 0) {
        let op = SeccompCmpOp::MaskedEq(bit);
        clones.push(rule(vec![condition(0, SeccompCmpArgLen::Qword, op, bit)?])?);
    }
    denied.insert(libc::SYS_clone, clones);
    match sockets(sandbox)? {
        all if all.is_empty() => always.push(libc::SYS_socket),
        some => drop(denied.insert(libc::SYS_socket, some)),
    }
    // Input for the terminal, and the attributes of a file that Landlock does not know.
    let mut ioctls = vec![
        rule(vec![condition(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, libc::TIOCSTI)?])?,
        rule(vec![condition(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, libc::TIOCLINUX)?])?,
    ];
    if sandbox.tier == Tier::T1 {
        for request in [FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR] {
            let is = condition(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request)?;
            ioctls.push(rule(vec![is])?);
        }
    }
    denied.insert(libc::SYS_ioctl, ioctls);
    let unsupported = if sandbox.tier == Tier::T1 { UNSUPPORTED } else { &[] };
    // What a process has open, its supervisor must be able to see.
    let hides = condition(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, PR_SET_DUMPABLE)?;
    let pretended = BTreeMap::from([(libc::SYS_prctl, vec![rule(vec![hides])?])]);
    Ok([
        by_number(&always, unsupported)?,
        by_argument(denied, libc::EPERM)?,
        by_argument(pretended, 0)?,
    ])
}

const PR_SET_DUMPABLE: u64 = 4;

const PRIO_USER: u64 = 2;
const IOPRIO_USER: u64 = 3;
const FS_IOC_SETFLAGS: u64 = 0x4008_6602;
const FS_IOC_FSSETXATTR: u64 = 0x401c_5820;

/// The sockets that are refused: all but those of these families.
fn sockets(sandbox: Sandbox) -> Result<Vec<SeccompRule>, NoFilter> {
    let internet = [libc::AF_INET, libc::AF_INET6];
    let families: Vec<i32> = match (sandbox.tier, sandbox.network) {
        // Its network is its own, and so are the sockets that it can find.
        (Tier::T2 | Tier::T3, Network::None) => {
            internet.into_iter().chain([libc::AF_UNIX]).collect()
        }
        (_, Network::Host) => internet.to_vec(),
        (_, Network::None) => Vec::new(),
    };
    let mut conditions = Vec::new();
    for family in families {
        let family = u64::from(family.cast_unsigned());
        conditions.push(condition(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family)?);
    }
    Ok(if conditions.is_empty() { Vec::new() } else { vec![rule(conditions)?] })
}

fn condition(
    argument: u8,
    length: SeccompCmpArgLen,
    op: SeccompCmpOp,
    value: u64,
) -> Result<SeccompCondition, NoFilter> {
    SeccompCondition::new(argument, length, op, value).map_err(|error| NoFilter(error.to_string()))
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, NoFilter> {
    SeccompRule::new(conditions).map_err(|error| NoFilter(error.to_string()))
}

/// Refuses these calls, whatever their arguments, and others as if the file system could not do
/// them. The kernel tries a filter with every number that there is before it accepts it, so that
/// this one is short: an instruction for each call.
fn by_number(refused: &[i64], unsupported: &[i64]) -> Result<BpfProgram, NoFilter> {
    let line = |code: u32, jt: u8, k: u32| {
        let code = u16::try_from(code).map_err(|error| NoFilter(error.to_string()))?;
        Ok(sock_filter { code, jt, jf: 0, k })
    };
    let number = |call: &i64| u32::try_from(*call).map_err(|error| NoFilter(error.to_string()));
    let (load, end) = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_RET | libc::BPF_K);
    let (is, is_from) = (libc::BPF_JMP | libc::BPF_JEQ, libc::BPF_JMP | libc::BPF_JGE);
    let errno = |errno: i32| libc::SECCOMP_RET_ERRNO | errno.cast_unsigned();
    // The C library asks for `clone3` first, and if the kernel does not know it, takes the older
    // call, which can be judged.
    let answers =
        [libc::SECCOMP_RET_ALLOW, errno(libc::EPERM), errno(libc::ENOSYS), errno(libc::EOPNOTSUPP)];
    let mut tests = vec![(is, number(&libc::SYS_clone3)?, 2), (is_from, X32, 1)];
    for (calls, answer) in [(refused, 1), (unsupported, 3)] {
        for call in calls {
            tests.push((is, number(call)?, answer));
        }
    }
    let mut lines = vec![line(load, 0, 0)?];
    for (at, (test, operand, answer)) in tests.iter().enumerate() {
        // Behind the tests there are the answers.
        let beyond = tests.len() - at - 1 + answer;
        let jump = u8::try_from(beyond).map_err(|error| NoFilter(error.to_string()))?;
        lines.push(line(*test, jump, *operand)?);
    }
    for answer in answers {
        lines.push(line(end, 0, answer)?);
    }
    Ok(lines)
}

/// Refuses calls with such arguments, and ends processes of another ABI.
fn by_argument(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, NoFilter> {
    let failed = |error: String| NoFilter(error);
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|it| failed(it.to_string()))?;
    let action = SeccompAction::Errno(errno.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, action, arch)
        .and_then(BpfProgram::try_from)
        .map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// What a filter of numbers answers.
    fn answer(filter: &BpfProgram, number: u32) -> u32 {
        let mut at = 1;
        loop {
            let line = &filter[at];
            at += 1;
            let is_met = match u32::from(line.code) {
                code if code == libc::BPF_RET => return line.k,
                code if code == libc::BPF_JMP | libc::BPF_JEQ => number == line.k,
                _ => number >= line.k,
            };
            at += usize::from(if is_met { line.jt } else { line.jf });
        }
    }

    #[test]
    fn every_number_has_its_answer() {
        let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
        let unknown = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
        let unsupported = libc::SECCOMP_RET_ERRNO | libc::EOPNOTSUPP.cast_unsigned();
        for (tier, network) in [
            (Tier::T1, Network::None),
            (Tier::T1, Network::Host),
            (Tier::T2, Network::None),
            (Tier::T2, Network::Host),
            (Tier::T3, Network::None),
            (Tier::T3, Network::Host),
        ] {
            let [by_number, ..] = filters(Sandbox { tier, network, identity: None }).unwrap();
            let is_listed = |call: i64| {
                let is_of_tier_1 = [SHARED, METADATA, METADATA_HERE].concat().contains(&call)
                    || (call == libc::SYS_socket && network == Network::None);
                NEVER.contains(&call)
                    || NEVER_HERE.contains(&call)
                    || (tier == Tier::T1 && is_of_tier_1)
            };
            for number in (0..1000).chain([X32 - 1, X32, X32 + 1, u32::MAX]) {
                let expected = match i64::from(number) {
                    libc::SYS_clone3 => unknown,
                    call if tier == Tier::T1 && UNSUPPORTED.contains(&call) => unsupported,
                    call if number >= X32 || is_listed(call) => refused,
                    _ => libc::SECCOMP_RET_ALLOW,
                };
                assert_eq!(answer(&by_number, number), expected, "{tier:?} {number}");
            }
        }
    }
}
