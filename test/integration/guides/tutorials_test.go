package guides_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/controlplane"
)

// Blocks of language console hold commands, which begin with "$ ", or with "alice$ " where user alice types them, and are followed by what
// they print. Each guide for users of another operator has a section with that operator's first tutorial in Warren's words.
var _ = DescribeTable("the first tutorial of another operator, as its guide translates it", func(ctx SpecContext, guide string) {
	steps := stepsOf(guide)
	Expect(len(steps)).To(BeNumerically(">", 10), "the guide has a tutorial")
	play(ctx, world.World, steps)
},
	Entry("MIG-T1 each command of the first tutorial in from-hnc.md prints what the guide shows", "docs/guides/from-hnc.md"),
	Entry("MIG-T2 each command of the first tutorial in from-accurate.md prints what the guide shows", "docs/guides/from-accurate.md"),
	Entry("MIG-T3 each command of the first tutorial in from-capsule.md prints what the guide shows, "+
		"for alice too", "docs/guides/from-capsule.md"),
)

// play runs the commands of a page one after another.
func play(ctx context.Context, w *devcluster.World, steps []step) {
	GinkgoHelper()
	request := pageRequest
	for _, s := range steps {
		s.command = strings.ReplaceAll(s.command, pageRequest, request)
		By(s.command)
		out := ""
		Eventually(func(ctx context.Context) (err error) {
			out, err = s.run(ctx, w)
			return err
		}).WithContext(ctx).Should(Succeed())
		if generated := requestName.FindString(out); generated != "" {
			request = generated
		}
	}
}

// pageRequest is the name of a SudoRequest on the pages. The API server generates another one, as requestName says.
const pageRequest = "sudo-x7k2p"

var requestName = regexp.MustCompile(`\bsudo-[a-z0-9]{5}\b`)

// step is one command of a tutorial, and what the guide says that it prints.
type step struct {
	user, command string
	prints        []string
}

var (
	block  = regexp.MustCompile("(?s)```console\n(.*?)```")
	prompt = regexp.MustCompile(`^([a-z]*)\$ (.*)$`)
	// reads matches commands that change nothing, which the test repeats until they print what the guide says.
	reads = regexp.MustCompile(` (get|tree|list|ns --tenant|describe|trace|wait|events|access|who-can|why|doctor|view|whoami|sql) `)
	// fails matches the first words of what a refused command prints.
	fails = regexp.MustCompile(`^(error|Error from server)\b`)
)

// stepsOf reads the commands of all console blocks of a page.
func stepsOf(page string) []step {
	GinkgoHelper()
	root, err := devcluster.Root()
	Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(root, page))
	Expect(err).NotTo(HaveOccurred())
	var steps []step
	for _, found := range block.FindAllStringSubmatch(string(text), -1) {
		document := ""
		for text := range strings.SplitSeq(strings.TrimSpace(found[1]), "\n") {
			words := prompt.FindStringSubmatch(text)
			switch last := len(steps) - 1; {
			case words != nil:
				user := words[1]
				if user == "" {
					user = controlplane.Admin
				}
				steps = append(steps, step{user: user, command: words[2]})
				if strings.HasSuffix(text, "<<EOF") {
					document = "EOF"
				}
			case document != "":
				steps[last].command += "\n" + text
				if text == document {
					document = ""
				}
			default:
				steps[last].prints = append(steps[last].prints, text)
			}
		}
	}
	return steps
}

// run runs the command, and compares its output, which it returns, with the page, in which a line "…" stands for any lines. If a
// repetition may help, it returns the difference as an error, otherwise it fails the case. A command that changes nothing may have to wait
// for the operator, another one for rights that the API server has not seen yet.
func (s step) run(ctx context.Context, w *devcluster.World) (string, error) {
	GinkgoHelper()
	want := "^"
	for _, text := range s.prints {
		if text == "…" {
			want += "(.*\n)*"
			continue
		}
		want += strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".*") + "\n"
	}
	want = strings.ReplaceAll(want, regexp.QuoteMeta(pageRequest), requestName.String())
	refused := len(s.prints) > 0 && fails.MatchString(s.prints[len(s.prints)-1])
	out, code := shell(ctx, w, s.user, s.command)
	if (code == 0) != refused && (len(s.prints) == 0 || regexp.MustCompile(want+"$").MatchString(out)) {
		return out, nil
	}
	differs := fmt.Errorf("%s prints:\n%s\nand not:\n%s", s.command, out, strings.Join(s.prints, "\n"))
	if !reads.MatchString(s.command+" ") && !strings.Contains(out, "orbidden") {
		return out, StopTrying(differs.Error())
	}
	return out, differs
}

// shell runs a command line as a user in a folder of the world, and returns all that it prints.
func shell(ctx context.Context, w *devcluster.World, user, command string) (string, int) {
	kubectl := devcluster.Kubectl{Path: w.KubectlPath, Plugins: w.Plugins, Home: filepath.Join(w.Dir, "home")}
	if err := os.MkdirAll(kubectl.Home, 0o700); err != nil {
		return err.Error(), -1
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = kubectl.Home, kubectl.Command(ctx, w.Kubeconfig(user), user).Env
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		return err.Error(), -1
	}
	return string(out), cmd.ProcessState.ExitCode()
}
