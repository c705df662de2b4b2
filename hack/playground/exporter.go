package main

import (
	"context"
	"log"
	"time"

	config "github.com/warren-tenancy/warren/api/config/v1alpha1"
	"github.com/warren-tenancy/warren/internal/configfile"
	"github.com/warren-tenancy/warren/test/devcluster"
	"github.com/warren-tenancy/warren/test/devcluster/process"
)

// exporter is the billing exporter, which runs while the configuration file names a database.
type exporter struct {
	place   place
	world   *devcluster.World
	process *process.Process // nil before the first start
	tried   time.Time
}

// keepRunning starts the exporter if it should run and does not. After a failure it waits for restartAfter.
func (e *exporter) keepRunning(ctx context.Context) {
	if e.process != nil && e.process.Running() || time.Since(e.tried) < restartAfter {
		return
	}
	file, err := configfile.Load(e.place.configFile())
	if err != nil || file.Billing.Driver == config.DriverNone {
		return // the operator reports what is wrong with the file
	}
	e.process, _, err = devcluster.StartExporter(ctx, e.world, e.place.managerFile(), e.place.configFile(), e.place.devFile("exporter.log"))
	if e.tried = time.Now(); err != nil {
		log.Printf("starting the billing exporter: %v", err)
	}
}

func (e *exporter) stop() error {
	if e.process == nil || !e.process.Running() {
		return nil
	}
	return e.process.Stop()
}
