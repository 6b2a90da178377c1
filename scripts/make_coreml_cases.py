"""Makes the small Core ML models under testdata/coreml: older neural networks, pipelines, kinds that are
out of scope, nested blocks. Needs `pip install coremltools==9.0` (and scikit-learn for nothing: the trees
are built by hand). Run from the repository's root."""

import pathlib

import numpy as np
import coremltools as ct
from coremltools.converters.mil import Builder as mb
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder
from coremltools.models.pipeline import Pipeline, PipelineClassifier
from coremltools.models.tree_ensemble import TreeEnsembleRegressor
from coremltools.proto import Model_pb2

OUT = pathlib.Path("testdata/coreml")
RNG = np.random.default_rng(0)


def weights(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def small_cnn(classifier):
    """Conv, batch norm, activation, pooling, concat, inner product, softmax over an image-like array."""
    inputs = [("image", datatypes.Array(3, 16, 16))]
    outputs = [("probs", datatypes.Array(4))]
    mode = "classifier" if classifier else None
    b = NeuralNetworkBuilder(inputs, outputs, mode=mode)
    b.add_convolution("conv1", 3, 8, 3, 3, 2, 2, "same", 1, weights(3, 3, 3, 8), weights(8), True,
                      input_name="image", output_name="c1")
    b.add_batchnorm("bn1", 8, weights(8), weights(8), weights(8), np.abs(weights(8)), input_name="c1", output_name="b1")
    b.add_activation("relu1", "RELU", "b1", "r1")
    b.add_convolution("dw", 1, 8, 3, 3, 1, 1, "valid", 8, weights(3, 3, 1, 8), None, False, input_name="r1", output_name="d1",
                      padding_top=0, padding_bottom=1, padding_left=1, padding_right=1)
    b.add_pooling("pool", 2, 2, 2, 2, "MAX", "VALID", "d1", "p1")
    b.add_convolution("up", 8, 8, 2, 2, 2, 2, "valid", 1, weights(2, 2, 8, 8), weights(8), True, is_deconv=True,
                      input_name="p1", output_name="u1")
    b.add_activation("leaky", "LEAKYRELU", "u1", "l1", [0.1])
    b.add_elementwise("cat", ["u1", "l1"], "k1", "CONCAT")
    b.add_pooling("gap", 0, 0, 1, 1, "AVERAGE", "VALID", "k1", "g1", is_global=True)
    b.add_flatten("flat", 0, "g1", "f1")
    b.add_inner_product("fc", weights(4, 16), weights(4), 16, 4, True, "f1", "logits")
    b.add_softmax("sm", "logits", "probs")
    if classifier:
        b.set_class_labels(["a", "b", "c", "d"], predicted_feature_name="label", prediction_blob="probs")
    return b.spec


def exact_shapes():
    """A newer network: exact shapes, attention by hand, a branch and a loop."""
    inputs = [("x", datatypes.Array(2, 4, 8)), ("flag", datatypes.Array(1))]
    outputs = [("y", None), ("z", None)]
    b = NeuralNetworkBuilder(inputs, outputs, disable_rank5_shape_mapping=True)
    b.add_batched_mat_mul("scores", ["x", "x"], "s", transpose_b=True)
    b.add_softmax_nd("attn", "s", "a", -1)
    b.add_batched_mat_mul("mix", ["a", "x"], "m")
    b.add_layer_normalization("ln", "m", "n", [8], weights(8), weights(8), 1e-5)
    b.add_gelu("gelu", "n", "y", "TANH_APPROXIMATION")
    branch = b.add_branch("branch", "flag")
    then = NeuralNetworkBuilder(input_features=None, output_features=None, spec=None,
                                nn_spec=branch.branch.ifBranch, disable_rank5_shape_mapping=True)
    then.add_reduce_mean("then_mean", "y", "z", axes=[1], keepdims=True)
    other = NeuralNetworkBuilder(input_features=None, output_features=None, spec=None,
                                 nn_spec=branch.branch.elseBranch, disable_rank5_shape_mapping=True)
    other.add_reduce_max("else_max", "y", "z", axes=[1], keepdims=True)
    return b.spec


def trees():
    t = TreeEnsembleRegressor([("f", datatypes.Double())], "out")
    t.set_default_prediction_value([0.0])
    t.add_branch_node(0, 0, 0, 0.5, "BranchOnValueLessThanEqual", 1, 2)
    t.add_leaf_node(0, 1, 1.0)
    t.add_leaf_node(0, 2, 2.0)
    return t.spec


def pipeline():
    """A network, then stages that have no graph."""
    spec = Model_pb2.Model()
    spec.specificationVersion = 4
    net = small_cnn(False)
    spec.description.input.extend(net.description.input)
    spec.description.output.extend(net.description.output)
    spec.pipeline.models.extend([net, trees()])
    spec.pipeline.names.extend(["network", "trees"])
    return spec


def save(name, spec):
    (OUT / name).write_bytes(spec.SerializeToString(deterministic=True))


def nested_blocks():
    """An ML Program with cond and while_loop."""

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 8, 4, 4)), mb.TensorSpec(shape=(1,))], opset_version=ct.target.iOS18)
    def prog(x, flag):
        pred = mb.squeeze(x=mb.greater(x=flag, y=0.0))
        scale = mb.const(val=np.float32(2.0))

        def yes():
            return mb.mul(x=x, y=scale, name="scaled")

        def no():
            return mb.relu(x=x, name="clipped")

        picked = mb.cond(pred=pred, _true_fn=yes, _false_fn=no, name="pick")

        def keep_going(i, y):
            return mb.less(x=i, y=3.0)

        def step(i, y):
            return mb.add(x=i, y=1.0), mb.add(x=y, y=x, name="grow")

        _, out = mb.while_loop(_cond=keep_going, _body=step, loop_vars=(np.float32(0.0), picked), name="repeat")
        return out

    return ct.convert(prog, convert_to="mlprogram", minimum_deployment_target=ct.target.iOS18,
                      compute_precision=ct.precision.FLOAT32, skip_model_load=True).get_spec()


def windows():
    """Every way to say a padding, and slices with masks."""

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 4, 9, 10))], opset_version=ct.target.iOS18)
    def prog(x):
        w = weights(4, 4, 3, 2)
        a = mb.conv(x=x, weight=w, pad_type="same", strides=[2, 2], name="same")
        b = mb.conv(x=x, weight=w, pad_type="same_lower", strides=[2, 2], name="same_lower")
        c = mb.conv(x=x, weight=w, pad_type="custom", pad=[1, 2, 0, 1], strides=[2, 3], name="custom")
        d = mb.conv(x=x, weight=w, pad_type="valid", dilations=[2, 1], name="valid")
        e = mb.max_pool(x=x, kernel_sizes=[3, 3], strides=[2, 2], pad_type="same", name="pool_same")
        f = mb.avg_pool(x=x, kernel_sizes=[2, 2], pad_type="custom", pad=[0, 1, 0, 1], exclude_padding_from_average=True, name="pool_custom")
        g = mb.conv_transpose(x=x, weight=weights(4, 4, 3, 3), pad_type="same", strides=[2, 2], name="transposed")
        h = mb.pad(x=x, pad=[1, 2, 3, 4], mode="constant", constant_val=0.5, name="padded")
        i = mb.slice_by_index(x=x, begin=[0, -3, 0, 0], end=[0, 0, 0, 0], begin_mask=[True, False, True, True],
                              end_mask=[True, True, True, True], name="last_channels")
        j = mb.slice_by_index(x=x, begin=[0, 0, -1, 0], end=[0, 0, 0, 0], begin_mask=[True, True, False, True],
                              end_mask=[True, True, True, True], squeeze_mask=[False, False, True, False], name="last_row")
        k = mb.slice_by_index(x=x, begin=[0, 1, 1, 0], end=[1, 3, 9, 10], stride=[1, 1, 2, 1], name="block")
        l = mb.slice_by_size(x=x, begin=[0, 0, 2, 0], size=[1, 4, -1, 10], name="rest")
        m = mb.split(x=x, num_splits=2, axis=-3, name="halves")
        n = mb.topk(x=x, k=2, axis=-1, ascending=True, name="smallest")
        o = mb.softmax(x=x, axis=-3, name="soft")
        return a, b, c, d, e, f, g, h, i, j, k, l, m[0], n[0], o

    return ct.convert(prog, convert_to="mlprogram", minimum_deployment_target=ct.target.iOS18,
                      compute_precision=ct.precision.FLOAT16, skip_model_load=True).get_spec()


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    save("cnn.mlmodel", small_cnn(False))
    save("cnn_classifier.mlmodel", small_cnn(True))
    save("exact_shapes.mlmodel", exact_shapes())
    save("trees.mlmodel", trees())
    save("pipeline.mlmodel", pipeline())
    save("nested_blocks.mlmodel", nested_blocks())
    save("windows.mlmodel", windows())
