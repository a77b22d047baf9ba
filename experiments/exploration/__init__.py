"""A local page on which one changes a fact graph and sees what its posteriors do."""
