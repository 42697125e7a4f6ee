@_exported import Foundation
public enum MLMultiArrayDataType: Int, Sendable { case double = 65600, float32 = 65568, float16 = 65552, int32 = 131104 }
public protocol MLShapedArrayScalar {} ; extension Float: MLShapedArrayScalar {} ; extension Int32: MLShapedArrayScalar {} ; extension Double: MLShapedArrayScalar {}
open class MLMultiArray: NSObject {
    public let shape: [NSNumber], dataType: MLMultiArrayDataType
    let floats: UnsafeMutableBufferPointer<Float>
    public init(shape: [NSNumber], dataType: MLMultiArrayDataType) throws {
        self.shape = shape; self.dataType = dataType
        floats = .allocate(capacity: shape.reduce(1) { $0 * $1.intValue })
    }
    open var count: Int { floats.count }
    open subscript(idx: Int) -> NSNumber { get { NSNumber(value: floats[idx]) } set { floats[idx] = newValue.floatValue } }
    public func withUnsafeMutableBufferPointer<S: MLShapedArrayScalar, R>(ofType: S.Type, _ body: (UnsafeMutableBufferPointer<S>, [Int]) throws -> R) rethrows -> R {
        try body(UnsafeMutableRawBufferPointer(floats).bindMemory(to: S.self), [])
    }
}
open class MLMultiArrayConstraint: NSObject { open var shape: [NSNumber] { [] } ; open var dataType: MLMultiArrayDataType { .float32 } }
open class MLFeatureDescription: NSObject { open var multiArrayConstraint: MLMultiArrayConstraint? { nil } }
open class MLModelDescription: NSObject { open var inputDescriptionsByName: [String: MLFeatureDescription] { [:] } }
open class MLFeatureValue: NSObject { public init(multiArray: MLMultiArray) {} ; open var multiArrayValue: MLMultiArray? { nil } }
public protocol MLFeatureProvider { func featureValue(for featureName: String) -> MLFeatureValue? }
open class MLDictionaryFeatureProvider: NSObject, MLFeatureProvider {
    public init(dictionary: [String: Any]) throws {}
    open func featureValue(for featureName: String) -> MLFeatureValue? { nil }
}
open class MLModel: NSObject {
    public init(contentsOf url: URL) throws {}
    open var modelDescription: MLModelDescription { MLModelDescription() }
    open func prediction(from input: any MLFeatureProvider) throws -> any MLFeatureProvider { fatalError() }
}
