package node

import "context"

// Stage implements Node.
func (t *Tasks) Stage(ctx context.Context, r StageRequest) error {
	k := task{op: "Stage", volumeID: r.VolumeID, paths: []string{r.StagingPath}, problem: r.Validate()}
	return t.run(ctx, k, func(ctx context.Context) error {
		kind, err := t.kindOf(r.Source)
		if err != nil {
			return err
		}
		found, err := t.look(ctx, r.StagingPath)
		if err != nil {
			return err
		}
		return kind.stage(ctx, r, found)
	})
}

// Unstage implements Node.
func (t *Tasks) Unstage(ctx context.Context, r UnstageRequest) error {
	k := task{op: "Unstage", volumeID: r.VolumeID, paths: []string{r.StagingPath}, problem: r.Validate()}
	return t.run(ctx, k, func(ctx context.Context) error {
		found, err := t.look(ctx, r.StagingPath)
		if err != nil {
			return err
		}
		kind, err := t.kindToUnstage(ctx, r.Source, found)
		if err != nil {
			return err
		}
		return kind.unstage(ctx, r, found)
	})
}
