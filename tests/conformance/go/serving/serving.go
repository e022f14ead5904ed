// Package serving starts `interlock serve` for tests, as a user would.
package serving

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// How long a server may take to become ready. It takes a fraction of a second on an idle machine.
const timeout = 60 * time.Second

// Server is a running `interlock serve` with a data directory of its own.
type Server struct {
	// Kubeconfig names the server and its administrator, with a context for each logical cluster.
	Kubeconfig string
	// URL is where the server listens.
	URL string
	// Authority is the PEM file of the authority that signs the certificate of the server.
	Authority string

	directory string
	address   string
	process   *exec.Cmd
}

// Binary is the program under test: INTERLOCK_BINARY says which.
func Binary() (string, error) {
	named := os.Getenv("INTERLOCK_BINARY")
	if named == "" {
		return "", errors.New("INTERLOCK_BINARY does not name the program to test: run `cargo xtask test-real`")
	}
	if _, err := os.Stat(named); err != nil {
		return "", fmt.Errorf("INTERLOCK_BINARY: %w", err)
	}
	return filepath.Abs(named)
}

// Start starts a server on a free port, and waits until it is ready.
func Start() (*Server, error) {
	directory, err := os.MkdirTemp("", "interlock-conformance-")
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(directory, "data")
	server := &Server{
		Kubeconfig: filepath.Join(data, "kubeconfig"),
		URL:        "https://" + address,
		Authority:  filepath.Join(data, "pki", "ca.crt"),
		directory:  directory,
		address:    address,
	}
	if err := server.Resume(); err != nil {
		server.Stop()
		return nil, err
	}
	return server, nil
}

// Resume starts the server again, on the same data and the same address, after [Server.Kill].
func (s *Server) Resume() error {
	binary, err := Binary()
	if err != nil {
		return err
	}
	data := filepath.Join(s.directory, "data")
	s.process = exec.Command(binary, "serve", "--listen", s.address, "--data-dir", data)
	log, err := s.process.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
		return err
	}
	ready := make(chan struct{})
	ended := make(chan string)
	go func() {
		var said []string
		isReady := false
		for lines := bufio.NewScanner(log); lines.Scan(); {
			line := lines.Text()
			if !isReady && strings.Contains(line, " ready ") {
				isReady = true
				close(ready)
			}
			if strings.Contains(line, "WARN") || strings.Contains(line, "ERROR") {
				fmt.Fprintln(os.Stderr, "server:", line)
			}
			if !isReady {
				said = append(said, line)
			}
		}
		if !isReady {
			ended <- strings.Join(said, "\n")
		}
	}()
	select {
	case <-ready:
		return nil
	case said := <-ended:
		return fmt.Errorf("interlock serve ended before it was ready:\n%s", said)
	case <-time.After(timeout):
		return errors.New("interlock serve does not become ready")
	}
}

// Kill ends the server as a crash would.
func (s *Server) Kill() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
}

// Stop ends the server and removes its data.
func (s *Server) Stop() {
	s.Kill()
	_ = os.RemoveAll(s.directory)
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
