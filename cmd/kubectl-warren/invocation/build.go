package invocation

import (
	"runtime"
	"runtime/debug"
)

// Build describes from what the program was built.
type Build struct {
	Version   string `json:"version"`
	Commit    string `json:"commit,omitempty"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

// NewBuild describes this program. For a version or commit that is "", it takes what the Go tool wrote into the
// program.
func NewBuild(version, commit string) Build {
	if info, ok := debug.ReadBuildInfo(); ok {
		if version == "" {
			version = info.Main.Version
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && commit == "" {
				commit = setting.Value
			}
		}
	}
	if version == "" {
		version = "(devel)"
	}
	return Build{Version: version, Commit: commit, GoVersion: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH}
}
