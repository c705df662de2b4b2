package ui

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
)

// openBrowser starts the browser with a file that leads to address. As an argument of the browser, which other users of
// the machine can read, the address would reveal its token. The caller removes the file by the function that
// openBrowser returns.
func openBrowser(ctx context.Context, address string) (removeFile func(), err error) {
	file, err := os.CreateTemp("", "warren-ui-*.html") // mode 0600
	if err != nil {
		return func() {}, fmt.Errorf("writing the file that the browser opens: %w", err)
	}
	removeFile = sync.OnceFunc(func() { _ = os.Remove(file.Name()) })
	_, err = fmt.Fprintf(file, "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">"+
		"<meta http-equiv=\"refresh\" content=\"0;url=%[1]s\"><title>Warren</title><a href=\"%[1]s\">Go on</a>\n", html.EscapeString(address))
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return removeFile, fmt.Errorf("writing the file that the browser opens: %w", err)
	}
	words := browserCommand()
	browser := exec.CommandContext(context.WithoutCancel(ctx), words[0], append(words[1:], file.Name())...)
	if err := browser.Start(); err != nil {
		return removeFile, fmt.Errorf("opening the browser %s: %w: leave out --open, and open the address that is printed then", words[0], err)
	}
	go func() { _ = browser.Wait() }()
	return removeFile, nil
}

// browserCommand is the command that opens a file in the person's browser: that of $BROWSER, else the system's.
func browserCommand() []string {
	if named := strings.Fields(os.Getenv("BROWSER")); len(named) > 0 {
		return named
	}
	switch runtime.GOOS {
	case "darwin":
		return []string{"open"}
	case "windows":
		return []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	return []string{"xdg-open"}
}
