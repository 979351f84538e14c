//! Jobs on threads of their own, while the calling thread watches.

use std::sync::{Mutex, mpsc};
use std::thread;

use crate::parallel::shared::{PATIENCE, join, lock, start};

/// As [`run`](super::run), but every job has a thread of its own. Meanwhile this thread calls `watch`, from
/// time to time and whenever a job sends a message; it does so only if every thread started.
pub(crate) fn watched<T: Send, J: FnOnce(&mpsc::Sender<()>) -> T + Send>(
    jobs: impl IntoIterator<Item = J>,
    mut watch: impl FnMut(),
) -> Vec<T> {
    let jobs: Vec<_> = jobs.into_iter().map(|job| Mutex::new(Some(job))).collect();
    let begin = |job: &Mutex<Option<J>>, sender: &mpsc::Sender<()>| {
        let job = lock(job).take();
        job.map(|job| job(sender))
    };
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let mut threads = Vec::new();
        for job in &jobs {
            let sender = sender.clone();
            threads.push(start(scope, move || begin(job, &sender)));
        }
        if threads.iter().all(Option::is_some) {
            drop(sender);
            while receiver.recv_timeout(PATIENCE) != Err(mpsc::RecvTimeoutError::Disconnected) {
                watch();
            }
            return threads.into_iter().flatten().filter_map(join).collect();
        }
        let done = jobs.iter().zip(threads);
        done.filter_map(|(job, thread)| thread.map_or_else(|| begin(job, &sender), join)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watcher_is_called_while_jobs_run() {
        let jobs = [1, 2].map(|number| {
            move |seen: &mpsc::Sender<()>| {
                seen.send(()).unwrap();
                number
            }
        });
        let mut looks = 0;
        assert_eq!(watched(jobs, || looks += 1), [1, 2]);
        assert!(looks >= 2);
    }
}
