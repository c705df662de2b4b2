package rolevetting

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/warren-tenancy/warren/docs/vetted"
)

// Shipped are the vetted lists that this version of Warren comes with.
var Shipped = Lists{vetted.Files}

// Lists are files named after a minor version of Kubernetes: 1.36.yaml.
type Lists struct{ Files fs.FS }

// For returns the list of a minor version. If there is none, it returns the list of the nearest lower version or, without a lower one, the
// list of the lowest version. exact reports that the list is that of minor itself.
func (l Lists) For(minor *version.Version) (list *List, exact bool, err error) {
	names, err := fs.Glob(l.Files, "*"+extension)
	if err != nil {
		return nil, false, fmt.Errorf("looking for vetted lists: %w", err)
	}
	var best *version.Version
	for _, name := range names {
		of, err := version.ParseMajorMinor(strings.TrimSuffix(path.Base(name), extension))
		if err != nil {
			return nil, false, fmt.Errorf("vetted list %s is not named after a minor version, such as 1.36.yaml: %w", name, err)
		}
		if best == nil || isNearer(of, best, minor) {
			best = of
		}
	}
	if best == nil {
		return nil, false, errors.New("there are no vetted lists")
	}
	data, err := fs.ReadFile(l.Files, FileName(best))
	if err != nil {
		return nil, false, err
	}
	list, err = Parse(data)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", FileName(best), err)
	}
	return list, best.EqualTo(minor), nil
}

// isNearer reports whether version a fits minor better than b: the highest version that is not above minor fits best, then the lowest
// one above.
func isNearer(a, b, minor *version.Version) bool {
	switch aFits, bFits := !a.GreaterThan(minor), !b.GreaterThan(minor); {
	case aFits && bFits:
		return a.GreaterThan(b)
	case aFits != bFits:
		return aFits
	}
	return a.LessThan(b)
}

const extension = ".yaml"

// FileName returns the name of the file with a minor version's list.
func FileName(minor *version.Version) string { return minor.String() + extension }

// Minor returns the minor version of an API server, such as 1.36. It is the version of the binary, which brings the built-in
// ClusterRoles, even where the server emulates an older version.
func Minor(server *apiversion.Info) (*version.Version, error) {
	minor, err := version.ParseMajorMinor(server.Major + "." + strings.TrimRight(server.Minor, "+")) // cloud providers write 36+
	if err != nil {
		return nil, fmt.Errorf("the API server's version %q names no minor version, so no vetted list fits: %w", server.GitVersion, err)
	}
	return minor, nil
}
