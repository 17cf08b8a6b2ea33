package org.sparkfp4.keys;

import java.io.Serializable;
import org.sparkfp4.formats.ScaleRule;

/**
 * What a cache's bytes depend on beside its keys.
 *
 * @param pageTokens tokens of a page
 * @param pages pages of a layer; 0: as many as its slots need
 * @param eps of the norms; null where there are none
 * @param roundNormToBf16 whether norm and rotation are rounded to bfloat16
 * @param hadamard whether keys are rotated
 * @param rule of the block scales
 * @param model name for the metadata; may be empty
 */
public record KeyOptions(int pageTokens, long pages, Float eps, boolean roundNormToBf16, boolean hadamard,
    ScaleRule rule, String model) implements Serializable {}
