package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// patience is how long the supervisor may take to end all processes in order. The supervisor has a time limit of its own for each process.
const patience = 40 * time.Second

// stopPlayground ends the playground and removes its files but for the configuration and the logs. It may be called at any time.
func stopPlayground(p place) error {
	lock, locked, err := p.tryLock()
	if err != nil {
		return err
	}
	if locked {
		fmt.Println("the playground doesn't run")
		return errors.Join(p.removeRemains(), lock.Unlock())
	}
	pid, err := p.readPID()
	if err != nil {
		return err
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		// Another process has the lock, so pid is that process, the supervisor. Its children die with it.
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending the playground (process %d): %w", pid, err)
		}
		if locked, err = waitFor(lock.TryLock); err != nil {
			return fmt.Errorf("waiting for the playground's end: %w", err)
		}
		if locked {
			fmt.Println("the playground has ended")
			return errors.Join(p.removeRemains(), lock.Unlock())
		}
	}
	return fmt.Errorf("process %d doesn't end: end it by hand", pid)
}

func waitFor(ok func() (bool, error)) (bool, error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if done, err := ok(); done || err != nil {
			return done, err
		}
	}
	return false, nil
}
