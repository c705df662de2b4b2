package graph

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/warren-tenancy/warren/cmd/internal/failure"
	"github.com/warren-tenancy/warren/cmd/internal/ownrights"
	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
)

// formats maps the values of --output to the functions that write these formats.
var formats = map[string]func(*Forest, io.Writer, Options) (warning string, err error){
	"html": (*Forest).WriteHTML, "svg": (*Forest).WriteSVG, "mermaid": (*Forest).WriteMermaid,
}

// request is what the flags of the command ask for.
type request struct {
	output           *invocation.Choice
	file             string
	depth            int
	people, problems bool
}

// Command is the command "graph [ROOT…]".
func Command(inv *invocation.Invocation) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "graph [ROOT…]",
		Short: "Draw the trees of namespaces as one file: HTML, SVG or Mermaid",
		Long: "Draw the trees of namespaces as one file, which needs nothing else; with a ROOT, only the tree that begins there.\n" +
			"The file lists no people unless --people asks for them. If you may not list namespaces, you see the trees that\n" +
			"kubectl warren ns finds, or what can be found from the roots that you name.",
		Example:           "  kubectl warren graph -f forest.html\n  kubectl warren graph payments -o svg -f payments.svg",
		Annotations:       map[string]string{invocation.InsteadOfNamespace: "name the root of a tree, as in kubectl warren graph payments"},
		ValidArgsFunction: inv.CompleteNamespaces,
	}
	r := &request{output: invocation.AddChoice(cmd, "output", "o", "html", "Output format", "html", "svg", "mermaid")}
	cmd.Flags().StringVarP(&r.file, "file", "f", "",
		"Write to this file, whole or not at all, instead of to standard output")
	cmd.Flags().IntVar(&r.depth, "depth", -1,
		"Fold what is more than this many levels below the top of a tree (-1: nothing)")
	cmd.Flags().BoolVar(&r.people, "people", false,
		"Show the managers, users and sudoers of each tenant, and in the head of the drawing your own user name")
	cmd.Flags().BoolVar(&r.problems, "problems", false, "Only trees with a problem")
	cmd.RunE = func(cmd *cobra.Command, roots []string) error { return r.printForest(cmd.Context(), inv, roots) }
	return cmd
}

func (r *request) printForest(ctx context.Context, inv *invocation.Invocation, roots []string) error {
	if r.output.Value == "html" && r.file == "" && terminal.Is(inv.Streams.Out) {
		return errors.New("-o html writes a page: give --file")
	}
	if err := invocation.CheckNamespaces(roots...); err != nil {
		return err
	}
	at, err := drawingTime(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	api, err := inv.Connect()
	if err != nil {
		return err
	}
	facts, err := Read(ctx, api, roots...)
	if errors.Is(err, ErrNoRoot) {
		facts, err = readOwn(ctx, inv, api)
	}
	if err != nil {
		return err
	}
	forest, err := Build(facts, roots...)
	if err != nil {
		return err
	}
	if r.problems {
		forest = forest.OnlyTroubled()
	}
	options := Options{About: About{Time: at}, People: r.people, Depth: r.depth}
	if options.Context, err = contextName(inv); err != nil {
		return err
	}
	if r.people {
		if options.Reader, err = readerName(ctx, api); err != nil {
			return err
		}
	}
	var drawing bytes.Buffer
	warning, err := formats[r.output.Value](forest, &drawing, options)
	if err != nil {
		return err
	}
	if warning != "" {
		terminal.Fprintln(inv.Streams.ErrOut, "Warning: "+warning)
	}
	if r.file != "" {
		return writeWhole(r.file, drawing.Bytes())
	}
	_, err = inv.Streams.Out.Write(drawing.Bytes())
	return err
}

// readOwn reads the trees that a user who may not list namespaces can find.
func readOwn(ctx context.Context, inv *invocation.Invocation, api client.Client) (Facts, error) {
	tops, err := inv.FindTops(ctx, api)
	if err != nil {
		return Facts{}, err
	}
	return ReadFound(ctx, api, tops)
}

// drawingTime returns the time in epoch, the value of SOURCE_DATE_EPOCH, or now if it is "". With a fixed time, the
// same forest gives the same bytes.
func drawingTime(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Now(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q: it must be a number of seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0), nil
}

// contextName is the context of the kubeconfig in force, or the API server's address where there is none.
func contextName(inv *invocation.Invocation) (string, error) {
	raw, err := inv.Flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return "", fmt.Errorf("finding the API server by the kubeconfig and flags: %w", err)
	}
	if name := cmp.Or(*inv.Flags.Context, raw.CurrentContext); name != "" {
		return name, nil
	}
	config, err := inv.RESTConfig()
	if err != nil {
		return "", err
	}
	return config.Host, nil
}

// readerName asks the API server who the user is; "" where it does not answer that question.
func readerName(ctx context.Context, api client.Client) (string, error) {
	me, err := ownrights.Identify(ctx, api)
	if err != nil && !failure.Unavailable(err) {
		return "", err
	}
	return me.Username, nil
}

// writeWhole writes a file that only its owner may read. Until all of it is written, a file of that name stays as it
// is.
func writeWhole(name string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--file %s: the folder %s does not exist", name, filepath.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("--file %s: %w", name, err)
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("--file %s: %w", name, err), os.Remove(file.Name()))
	}
	return nil
}
