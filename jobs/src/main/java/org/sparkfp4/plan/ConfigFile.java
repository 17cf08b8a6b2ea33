package org.sparkfp4.plan;

import com.fasterxml.jackson.databind.JsonNode;

/** A JSON file of the output, such as config.json or hf_quant_config.json. */
public record ConfigFile(String name, JsonNode content) {}
