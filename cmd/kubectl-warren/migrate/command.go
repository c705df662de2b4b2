package migrate

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/warren-tenancy/warren/cmd/internal/terminal"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/gather"
	"github.com/warren-tenancy/warren/cmd/kubectl-warren/invocation"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/internal/text"
)

// Commands returns the group of commands "migrate …", one for each operator from which a cluster can move.
func Commands(inv *invocation.Invocation) *cobra.Command {
	group := &cobra.Command{Use: "migrate",
		Short: "Move a cluster from another operator of tenants or namespace trees to Warren"}
	for _, p := range []peer{hncPeer, accuratePeer, capsulePeer} {
		group.AddCommand(newPeerCommand(inv, p))
	}
	return group
}

// options are the flags of a migration.
type options struct {
	apply, finish, undo, yes                     bool
	peerNamespace, peerConfig, operator, ourFile string
	output                                       *invocation.Choice
}

// document is the plan as it is printed.
type document struct {
	invocation.Document
	From string `json:"from"`
	Plan
}

func newPeerCommand(inv *invocation.Invocation, p peer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   p.word,
		Short: "Move a cluster from " + p.title + " to Warren",
		Long: "Print the writes by which Warren would take over the namespaces and copies of " + p.title +
			", and what has no counterpart.\n" +
			"Without --apply, --undo and --finish, the command writes nothing. --apply carries out all steps but the last, --undo takes these\n" +
			"steps back, --finish takes the last step. If a command was interrupted, repeat it. All is done with your own rights.\n" +
			"Of what existed before, no namespace, no copy and no object of " + p.title + " is deleted" + p.except + ".\n" +
			"After --finish, delete the objects of " + p.title + " yourself.",
		Example:           "  kubectl warren migrate " + p.word + "\n  kubectl warren migrate " + p.word + " --apply",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o := &options{}
	flags := cmd.Flags()
	flags.BoolVar(&o.apply, "apply", false, "carry out all steps but the last")
	flags.BoolVar(&o.finish, "finish", false, "take the last step, which can't be undone: copies follow their sources again, and "+
		"you can delete the other operator's objects without losing anything else")
	flags.BoolVar(&o.undo, "undo", false, "take back what --apply did")
	flags.BoolVar(&o.yes, "yes", false, "don't ask")
	cmd.MarkFlagsMutuallyExclusive("apply", "finish", "undo")
	flags.StringVar(&o.peerNamespace, "peer-namespace", p.namespace, "Namespace in which "+p.title+" runs")
	flags.StringVar(&o.ourFile, "config", "",
		"Warren's configuration file, instead of the ConfigMap that the operator reads")
	if p.needsFile {
		flags.StringVar(&o.peerConfig, "peer-config", "", "configuration file of "+p.title)
	}
	operator := invocation.AddOperatorNamespace(cmd)
	o.output = invocation.AddChoice(cmd, "output", "o", outputTable, "Output format of the plan; yaml and json have every write", outputTable,
		invocation.OutputYAML, invocation.OutputJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.operator = *operator
		return runMigration(cmd.Context(), inv, p, o)
	}
	return cmd
}

func runMigration(ctx context.Context, inv *invocation.Invocation, p peer, o *options) error {
	r, err := o.connectReader(ctx, inv, p)
	if err != nil {
		return err
	}
	estate, c, err := r.readEverything(ctx)
	if err != nil {
		return err
	}
	plan := NewPlan(estate, c)
	if o.undo {
		if plan, err = NewUndo(estate, c); err != nil {
			return err
		}
	}
	if !o.apply && !o.finish && !o.undo {
		return printMigrationPlan(inv, o, p, plan)
	}
	if estate.Stop != "" && !o.undo {
		return errors.New(estate.Stop)
	}
	if err := o.checkPlanFeasible(p, c, plan); err != nil {
		return err
	}
	if err := r.tryTreeQuotas(ctx, plan); err != nil {
		return err
	}
	return o.confirmAndCarryOut(ctx, inv, r, estate, plan)
}

// connectReader makes a reader of the peer's objects, with Warren's configuration.
func (o *options) connectReader(ctx context.Context, inv *invocation.Invocation, p peer) (*reader, error) {
	api, err := inv.ConnectDiscovering()
	if err != nil {
		return nil, err
	}
	r := &reader{api: api, peer: p, peerNamespace: o.peerNamespace, operatorNamespace: o.operator}
	if o.peerConfig != "" {
		if r.peerConfiguration, err = inv.ReadFile(o.peerConfig); err != nil {
			return nil, err
		}
	}
	name, content := o.ourFile, ""
	if name != "" {
		var data []byte
		data, err = os.ReadFile(name)
		content = string(data)
	} else {
		name, content, err = gather.ReadStoredConfig(ctx, api, o.operator)
	}
	if err != nil {
		return nil, fmt.Errorf("the configuration of Warren, which says which kinds are copied, can't be read; name a file with --config, "+
			"or the operator's namespace with --operator-namespace: %w", err)
	}
	if r.configuration, err = configfile.Parse(name, []byte(content)); err != nil {
		return nil, invocation.Problems(strings.Split(err.Error(), "\n"))
	}
	return r, nil
}

// checkPlanFeasible returns an error if the plan can't be carried out as a whole.
func (o *options) checkPlanFeasible(p peer, c Cluster, plan Plan) error {
	if o.peerNamespace != "" && len(c.Peer.Deployments) == 0 && !o.undo {
		return fmt.Errorf("no Deployment named %s* in namespace %s: name the namespace in which %s runs with --peer-namespace, or give "+
			"--peer-namespace='' if %s is deleted",
			p.prefix, o.peerNamespace, p.title, p.title)
	}
	if doubt := c.Peer.doubtAboutGrants(p); doubt != "" && o.apply {
		return errors.New(doubt)
	}
	if o.undo {
		return nil
	}
	if err := errors.Join(plan.checkPlacesAgreed(p), plan.checkNoLimitExceeded(), c.Peer.checkOldStored(p)); err != nil || o.apply {
		return err
	}
	before := 0
	for _, step := range plan.Steps {
		if step.Phase != Finish {
			before++
		}
	}
	if before > 0 {
		return fmt.Errorf("%s must be done before the last step: run kubectl warren migrate %s --apply", text.Count(before, "write", "writes"),
			p.word)
	}
	return nil
}

// confirmAndCarryOut asks the user to confirm the plan, and carries it out.
func (o *options) confirmAndCarryOut(ctx context.Context, inv *invocation.Invocation, r *reader, estate *Estate,
	plan Plan) error {
	x := &executor{reader: r, read: r.readEverything, out: inv.Streams.Out, plan: planOn, agreed: plan.agreed,
		tenants: slices.Sorted(maps.Keys(estate.Tenants))}
	switch {
	case o.apply:
		x.until = Budgets
	case o.undo:
		x.plan, x.tenants = NewUndo, nil
	}
	now := plan
	now.Steps = slices.DeleteFunc(slices.Clone(plan.Steps),
		func(step Step) bool { return step.Phase == Finish && !o.finish })
	if len(now.Steps) > 0 && !o.yes {
		now.writePlanTables(inv.Streams.ErrOut)
		if !confirmWithUser(inv, fmt.Sprintf("Migration from %s: write this now? [y/N] ", r.peer.title)) {
			return errors.New("nothing was done")
		}
	}
	left, err := x.runUntilDone(ctx)
	if err != nil && x.begun {
		return o.withRecoveryAdvice(err, r.peer, x.stopped)
	}
	if err != nil {
		return fmt.Errorf("nothing was written: %w%s", err, r.adviceBeforeStart(err))
	}
	if !o.undo {
		for _, gap := range left.Gaps {
			terminal.Fprintf(inv.Streams.ErrOut, "Warning: %s: %s\n", gap.What, gap.Instead)
		}
	}
	switch {
	case o.apply && len(left.Steps) > 0:
		terminal.Fprintf(inv.Streams.Out, "Only the last step is left. Check the cluster, then run kubectl warren migrate %s with --finish or "+
			"--undo\n", r.peer.word)
	case o.undo && len(plan.Steps) == 0:
		terminal.Fprintf(inv.Streams.Out, "There is no migration from %s to undo\n", r.peer.title)
	case o.undo:
		terminal.Fprintf(inv.Streams.Out, "%s. What users have changed or deleted since --apply stays as it is\n",
			describeUndone(r.peer.title, x.stopped))
	default:
		terminal.Fprintf(inv.Streams.Out, "The migration is done: %s and its objects are no longer needed\n", r.peer.title)
	}
	return nil
}

// describeUndone returns how the sentence begins after a migration is undone. stopped reports that no Deployment of the
// other operator asks for a Pod: it has none any more, or had no replicas before the migration.
func describeUndone(title string, stopped bool) string {
	if stopped {
		return fmt.Sprintf("The migration is undone. %s does not run: its Deployments are missing, or have 0 replicas", title)
	}
	return fmt.Sprintf("The migration is undone, and %s is started", title)
}

// adviceBeforeStart returns what to do if the first write failed because a webhook doesn't answer; "" for other errors.
func (r *reader) adviceBeforeStart(err error) string {
	if !strings.Contains(err.Error(), "failed calling webhook") {
		return ""
	}
	return fmt.Sprintf(". Start %s first if the webhook is its own (kubectl get deployments -n %s), then give the command again", r.peer.title,
		cmp.Or(r.peerNamespace, r.peer.namespace))
}

// withRecoveryAdvice adds to an error that ended the run whether the other operator runs or is stopped, and what the
// user can do.
func (o *options) withRecoveryAdvice(err error, p peer, stopped bool) error {
	flag, is, back := "--apply", "still runs", ", or take back what was written with --undo"
	if stopped {
		is, back = "is stopped", fmt.Sprintf(", or start %s again with --undo", p.title)
	}
	switch {
	case o.undo:
		flag, back = "--undo", ""
	case o.finish:
		flag, back = "--finish", ""
	}
	return fmt.Errorf("%w\n%s %s. Correct this error, and give the same command again (kubectl warren migrate %s %s)%s", err, p.title, is,
		p.word, flag, back)
}

// confirmWithUser asks the user a question, and reports whether the answer is yes.
func confirmWithUser(inv *invocation.Invocation, question string) bool {
	terminal.Fprintf(inv.Streams.ErrOut, "%s", question)
	answer, err := bufio.NewReader(inv.Streams.In).ReadString('\n')
	if err != nil {
		terminal.Fprintf(inv.Streams.ErrOut, "\n") // the input ended without a line break
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
