"""From batches to a trained model: loss, schedule, optimizer, trainer, checkpoint."""
