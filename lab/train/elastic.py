"""Elastic training of a small regression with PyTorch, for the lab.

    elastic.py meet    the rendezvous: a store that stays while workers come and go
    elastic.py launch  one member of the job: an elastic agent, which runs `elastic.py work`
    elastic.py work    one worker, started by its agent

A member that is told to leave reads so in the notice file (the pod's annotation through the downward API). All workers then stop at the
same step, rank 0 saves the model, and the noticed member acknowledges the notice's epoch in the answers' directory, whence a side-car
brings it to the pod's annotation. Nobody trains on until the noticed member has gone: what it would do could only be lost.

Every step uses the same batch however many workers share it, and sums the gradients of their shares. The curve of the loss is therefore
that of one worker, and a curve that goes on after a recall can be told from one that starts anew.
"""

import argparse
import ctypes
import datetime
import json
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

FEATURES = 32
BATCH = 240  # divides by 1 to 6 workers


def say(what, **facts):
    """Prints one line of facts, as train.Parse reads them."""
    print(" ".join([what] + [f"{k}={v:.6g}" if isinstance(v, float) else f"{k}={v}" for k, v in facts.items()]), flush=True)


def write(path, text):
    """Replaces a file as a whole, so that nobody reads half of it."""
    with open(path + ".new", "w") as f:
        f.write(text)
    os.replace(path + ".new", path)


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except FileNotFoundError:
        return ""


def die_with_parent():
    """A worker must not outlive its agent, even one that was killed without a word."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Notice:
    """What this member was told, and what it answered."""

    def __init__(self, path, answers, patience):
        self.path, self.answers, self.patience = path, answers, patience
        self.answered = None

    def stands(self):
        """Loan and epoch of the notice that stands; None when nobody wants this member to go."""
        text = read(self.path)
        if not text:
            return None
        notice = json.loads(text)
        # A notice that is taken back disappears from the file. One that stays long past its deadline is void as well: nobody came, and
        # nobody may be there to take it back.
        deadline = datetime.datetime.fromisoformat(notice["deadline"].replace("Z", "+00:00"))
        late = datetime.datetime.now(datetime.timezone.utc) - deadline
        return (notice["loan"], notice["epoch"]) if late.total_seconds() < self.patience else None

    def acknowledge(self, told):
        write(os.path.join(self.answers, "ack"), str(told[1]))
        self.answered = told


class Training:
    """The model, its optimiser and the step that both stand at."""

    def __init__(self, rate):
        torch.manual_seed(1)
        self.model = nn.Sequential(nn.Linear(FEATURES, 32), nn.Tanh(), nn.Linear(32, 1))
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=rate)
        self.step = 0
        self.loss = float("nan")
        generator = torch.Generator().manual_seed(2)
        self.truth = torch.randn(FEATURES, 1, generator=generator) / FEATURES**0.5

    def share(self, rank, world):
        """This worker's part of the step's batch."""
        generator = torch.Generator().manual_seed(1000 + self.step)
        x = torch.randn(BATCH, FEATURES, generator=generator)
        y = x @ self.truth + 0.05 * torch.randn(BATCH, 1, generator=generator)
        return x[rank::world], y[rank::world]

    def advance(self, rank, world):
        """One step together with the others: loss and gradients travel in one sum."""
        x, y = self.share(rank, world)
        self.optimiser.zero_grad()
        loss = ((self.model(x) - y) ** 2).sum() / BATCH
        loss.backward()
        parts = [p.grad for p in self.model.parameters()]
        flat = torch.cat([loss.detach().reshape(1)] + [g.reshape(-1) for g in parts])
        dist.all_reduce(flat)
        at = 1
        for g in parts:
            g.copy_(flat[at : at + g.numel()].reshape(g.shape))
            at += g.numel()
        self.optimiser.step()
        self.step += 1
        self.loss = float(flat[0])

    def save(self, directory):
        path = os.path.join(directory, "model.pt")
        state = {"step": self.step, "loss": self.loss, "model": self.model.state_dict(), "optimiser": self.optimiser.state_dict()}
        torch.save(state, path + ".new")
        os.replace(path + ".new", path)

    def load(self, directory):
        path = os.path.join(directory, "model.pt")
        if not os.path.exists(path):
            return False
        state = torch.load(path)
        self.step, self.loss = state["step"], state["loss"]
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        return True


def checkpoint(training, args):
    """Saves, and says when to whoever chooses whose work is lost least by a recall."""
    training.save(args.checkpoints)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    write(os.path.join(args.answers, "checkpoint"), now)
    say("checkpoint", step=training.step, loss=training.loss)


def begin(args, rank, world):
    """The training as it was saved last. How far it had gone beyond that, and so what is lost, stands in a file of its own."""
    training = Training(args.rate)
    if training.load(args.checkpoints) and rank == 0:
        reached = int(read(os.path.join(args.checkpoints, "reached")) or training.step)
        say("resume", step=training.step, loss=training.loss, lost=max(reached - training.step, 0), world=world)
    return training


def together(*facts):
    """Sums what each worker knows."""
    told = torch.tensor([float(f) for f in facts])
    dist.all_reduce(told)
    return told.tolist()


def work(args):
    """One life of a worker: until the work is done, or a peer goes and the agents gather those who are there now."""
    die_with_parent()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    training = begin(args, rank, world)
    try:
        train(training, args, rank, world)
    except RuntimeError as e:  # what gloo raises when a peer hangs up
        say("broken", step=training.step)
        print(e, file=sys.stderr)
        sys.exit(1)


def train(training, args, rank, world):
    notice = Notice(args.notice, args.answers, args.patience)
    while training.step < args.steps:
        told = notice.stands()
        asked, resting = together(told not in (None, notice.answered), told is not None)
        if asked:
            if rank == 0:
                checkpoint(training, args)
            dist.barrier()  # the work of all is saved before anyone says so
            if told not in (None, notice.answered):
                notice.acknowledge(told)
                say("ack", step=training.step, epoch=told[1])
        if resting:
            time.sleep(args.pause)
            continue
        training.advance(rank, world)
        if rank == 0:
            write(os.path.join(args.checkpoints, "reached"), str(training.step))
            say("train", step=training.step, loss=training.loss, world=world)
            if training.step % args.every == 0:
                checkpoint(training, args)
        time.sleep(args.pause)
    if rank == 0:
        checkpoint(training, args)


def launch(args):
    """The agent of one member. torch.distributed.run would do, but its argument parser breaks on Python 3.11 (PyTorch before 2.0)."""
    from torch.distributed.elastic.multiprocessing import SignalException, Std
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ.setdefault("GLOO_SOCKET_IFNAME", args.interface)
    config = LaunchConfig(
        min_nodes=args.min,
        max_nodes=args.max,
        nproc_per_node=1,
        run_id=args.job,
        rdzv_backend="c10d",
        rdzv_endpoint=args.rendezvous,
        # A short last call: who comes later joins by a restart of the workers, which costs a second.
        rdzv_configs={"is_host": "false", "last_call_timeout": 2},
        # Each resize is charged as a restart where the workers see their peer go first, so the bound must hold for the job's life.
        max_restarts=1000,
        monitor_interval=1,
        redirects=Std.NONE,
        tee=Std.NONE,
    )
    try:
        elastic_launch(config, sys.executable)("-u", os.path.abspath(__file__), "work", *args.rest)
    except SignalException as e:
        # Not 0: a Job takes that for the end of its work and starts nobody again.
        sys.exit(128 + e.sigval)


def meet(args):
    """The rendezvous' store outlives every worker, so that a job which lost all of them can meet again."""
    port = int(args.rendezvous.rpartition(":")[2])
    store = dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    say("meet", port=store.port)
    while True:
        signal.pause()


def arguments(argv):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["meet", "launch", "work"])
    parser.add_argument("--job", default="elastic", help="name of the job, the same in every member")
    parser.add_argument("--rendezvous", default="127.0.0.1:29400", help="HOST:PORT of the rendezvous")
    parser.add_argument("--interface", default="lo", help="network interface of the workers")
    parser.add_argument("--min", type=int, default=1, help="fewest members")
    parser.add_argument("--max", type=int, default=4, help="most members")
    parser.add_argument("--checkpoints", default=".", help="directory that all members share")
    parser.add_argument("--notice", default="notice", help="file with the pod's notice")
    parser.add_argument("--answers", default=".", help="directory for ack and checkpoint")
    parser.add_argument("--steps", type=int, default=100000, help="steps to train")
    parser.add_argument("--every", type=int, default=50, help="steps between checkpoints")
    parser.add_argument("--pause", type=float, default=0.2, help="seconds to rest after each step")
    parser.add_argument("--patience", type=float, default=120, help="seconds past a notice's deadline to wait for the eviction")
    parser.add_argument("--rate", type=float, default=0.003, help="learning rate")
    args = parser.parse_args(argv)
    args.rest = argv[1:]
    return args


def main():
    args = arguments(sys.argv[1:])
    {"meet": meet, "launch": launch, "work": work}[args.what](args)


if __name__ == "__main__":
    main()
