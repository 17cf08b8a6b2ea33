package org.sparkfp4.plan;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceFile;

/**
 * What a plan is made from.
 *
 * @param input the checkpoint's folder, a qualified path
 * @param config content of its config.json
 * @param files the files that hold its tensors
 * @param tensors its tensors
 */
record PlanSource(String input, JsonNode config, List<SourceFile> files, List<LocatedTensor> tensors) {}
